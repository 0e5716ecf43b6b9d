import type { KnownAddresses } from '@agent-trading-service/protocol/call-words'
import { isTicker } from '@agent-trading-service/protocol/message-terms'
import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { agentRegistry, mandateVault } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'
import { readVaultsAndTokens } from './read-vaults-and-tokens.ts'

/** What an address is; `name` is the symbol of a token, the slug of a vault or the name of a contract. */
export type Known = { name: string; contract?: string }

/** How long the names are used: contracts are replaced by operations that are public for days. */
const LEASE_MS = 60_000

/**
 * Returns what the addresses of a deployment are: the configured contracts and, as far as the chain can be read, the
 * contracts, vaults and tokens that these name.
 */
export async function readKnownAddresses(chain: Chain): Promise<KnownAddresses> {
  const { contracts, trading, memory } = chain
  if (Date.now() - (memory.named?.readAt ?? 0) >= LEASE_MS) {
    const named = await readNamed(chain).catch(() => undefined)
    if (named) memory.named = { readAt: Date.now(), byAddress: new Map(named) }
  }
  const configured = new Map(
    Object.entries({ ...contracts, ...trading }).map(([name, address]) => [
      address?.toLowerCase(),
      { name, contract: name },
    ]),
  )
  const find = (address: Address): Known | undefined =>
    memory.named?.byAddress.get(address.toLowerCase()) ?? configured.get(address.toLowerCase())
  return { contractAt: address => find(address)?.contract, nameOf: address => find(address)?.name }
}

async function readNamed(chain: Chain): Promise<[address: string, known: Known][]> {
  const { registered } = await readVaultsAndTokens(chain)
  const { values } = await readTree(chain, {
    orderBook: optional(call(agentRegistry(chain), 'orderBook', [])),
    ownerControls: optional(call(agentRegistry(chain), 'ownerControls', [])),
    queues: registered.vaults.map(({ address }) => optional(call(mandateVault(address), 'requestQueue', []))),
  })
  const slugs = registered.vaults.map(vaultSlug)
  const found: [Address | undefined, Known][] = [
    [values.orderBook, { name: 'OrderBook', contract: 'OrderBook' }],
    [values.ownerControls, { name: 'OwnerControls', contract: 'OwnerControls' }],
    ...values.queues.map((queue, index): [Address | undefined, Known] => [
      queue,
      { name: slugs[index] ?? '', contract: 'RequestQueue' },
    ]),
    ...registered.tokens
      .filter(({ symbol }) => isTicker(symbol))
      .map(({ address, symbol }): [Address, Known] => [address, { name: symbol }]),
    ...registered.vaults.flatMap((vault, index): [Address, Known][] => [
      [vault.asset, { name: 'USDC', contract: 'USDC' }],
      [vault.address, { name: slugs[index] ?? '', contract: 'MandateVault' }],
    ]),
  ]
  return found.flatMap(([address, known]) => (address === undefined ? [] : [[address.toLowerCase(), known]]))
}
