import { type Address, zeroAddress } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { agentRegistry } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { listedVaults, vaultListCalls } from '../chain/read-vaults-and-tokens.ts'
import type { NamedContracts } from './followed-events.ts'
import type { IndexStore } from './store.ts'

/**
 * Reads the contracts that permanent ones name: those of the index, and from the chain the present ones that may have
 * been named before the index begins. Owner controls and an order book exist only in some deployments. Throws
 * CHAIN_UNREACHABLE.
 */
export async function readNamedContracts(
  chain: Chain,
  { readNamed }: Pick<IndexStore, 'readNamed'>,
): Promise<NamedContracts> {
  const [{ values }, indexed] = await Promise.all([
    readTree(chain, {
      vaults: vaultListCalls(chain),
      ownerControls: optional(call(agentRegistry(chain), 'ownerControls', [])),
      orderBook: optional(call(agentRegistry(chain), 'orderBook', [])),
    }),
    readNamed(chain),
  ])
  const existing = (address: Address | undefined) => (address && address !== zeroAddress ? [address] : [])
  return {
    vaults: new Set([...Object.values(chain.vaults), ...(await listedVaults(chain, values.vaults))]),
    ownerControls: new Set([...indexed.ownerControls, ...existing(values.ownerControls)]),
    orderBooks: new Set([...indexed.orderBooks, ...existing(values.orderBook)]),
    routers: new Set(indexed.routers),
    oracles: new Set(indexed.oracles),
    tokens: new Set([...Object.values(chain.tokens), ...indexed.tokens]),
  }
}
