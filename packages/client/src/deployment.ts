import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { type Address, getAddress, isAddress } from 'viem'
import { type ChainReader, discoveryNames, type NonceHolder } from './chain.ts'
import { NotFoundError, type QuoteMismatch, UntrustedQuoteError, ValidationError } from './errors.ts'
import type { Reads } from './reads.ts'
import type { Domain, SigningContract } from './typed-data.ts'

/**
 * What the caller knows of the deployment and the service must agree with. What is not pinned is taken from the
 * service's first answer and may not change after it.
 */
export type Pins = {
  chainId?: number
  tradeRouter?: Address
  agentRegistry?: Address
  ownerControls?: Address | undefined
  orderBook?: Address | undefined
  /** The vault, or the vaults, that messages may name. */
  vault?: Address | readonly Address[]
  /** Token addresses by symbol. A symbol that is missing here is taken from the service. */
  tokens?: Readonly<Record<string, Address>>
}

/** The names of the specification; a chain that is read with `rpcUrl` may have others. */
export const domainNames: Readonly<Record<SigningContract, string>> = {
  tradeRouter: 'Service TradeRouter',
  agentRegistry: 'Service AgentRegistry',
  ownerControls: 'Service OwnerControls',
  orderBook: 'Service OrderBook',
}
export const DOMAIN_VERSION = '1'

export type Deployment = ReturnType<typeof createDeployment>

/** Returns what messages may name: from the pins, confirmed on chain where there is a reader, else from the service. */
export function createDeployment(reads: Reads, pins: Pins, chain: ChainReader | undefined) {
  const memory = new Map<string, Promise<unknown>>()
  /** Remembers the first answer; a failure is not remembered. */
  function once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const known = memory.get(key) ?? read()
    memory.set(key, known)
    known.catch(() => memory.delete(key))
    return known as Promise<T>
  }

  const discovery = () => once('discovery', () => reads.getDiscovery())

  const chainId = () =>
    once('chainId', async () => {
      const expected = pins.chainId ?? (await discovery()).chainId
      if (expected === null) throw missing('a chain')
      if (chain) assertSame('CHAIN_ID', [{ field: 'chain id of rpcUrl', expected, given: await chain.chainId() }])
      return expected
    })

  const addressOf = async (contract: SigningContract): Promise<Address> => {
    const address = pins[contract] ?? (await discovery()).contracts[discoveryNames[contract]]
    if (address === undefined || !isAddress(address, { strict: false })) throw missing(discoveryNames[contract])
    return getAddress(address)
  }

  /** Returns the signing domain of a contract. With a chain reader, the contract itself has to name it. */
  const domainOf = (contract: SigningContract) =>
    once(`domain ${contract}`, async (): Promise<Domain> => {
      const verifyingContract = await addressOf(contract)
      const expected = { chainId: await chainId(), verifyingContract, version: DOMAIN_VERSION }
      if (!chain) return { ...expected, name: domainNames[contract] }
      const { name, ...given } = await chain.domainOf(verifyingContract)
      assertSame(
        'CONTRACT',
        Object.entries(expected).map(([field, value]) => ({
          field: `${field} of ${contract}.eip712Domain()`,
          expected: value,
          given: given[field as keyof typeof given],
        })),
      )
      return { ...expected, name }
    })

  const listed = async () => (await once('tokens', () => reads.listTokens())).tokens

  return {
    domainOf,
    /**
     * Returns the token of a symbol in any case with its own spelling, the same one for as long as the client lives.
     */
    tokenOf: (symbol: string, agentId: string) =>
      once(`token ${symbol}`, async (): Promise<{ symbol: string; token: Address }> => {
        const pinned = Object.entries(pins.tokens ?? {}).map(([name, address]) => ({ symbol: name, address }))
        const found = findSymbol(pinned, symbol) ?? findSymbol(await listed(), symbol)
        if (found) return { symbol: found.symbol, token: getAddress(found.address) }
        // Others could not be bought either.
        const { vault } = (await reads.getAgent({ agentId })).agent
        const { tokens } = await reads.listVaultTokens({ id: vault })
        throw new ValidationError('UNKNOWN_SYMBOL', `There is no token with the symbol ${symbol}.`, {
          remedy: `Use one of ${tokens.map(token => token.symbol).join(', ')}, which the vault of agent ${agentId} accepts.`,
        })
      }),
    /** Returns the vault of an agent. It has to be a pinned one, if vaults are pinned. */
    vaultOf: (agentId: string) =>
      once(`vault ${agentId}`, async () => assertVault((await reads.getAgent({ agentId })).agent.vault)),
    /** Returns the address of a vault that is given by slug or address. */
    vaultBy: (id: string) =>
      once(`vault by ${id}`, async () =>
        assertVault(isAddress(id, { strict: false }) ? id : (await reads.getVault({ id })).vault.contractAddress),
      ),
    /** Returns a contract's next nonce for a holder; undefined without a chain reader. */
    async nonceOf(contract: SigningContract, holder: NonceHolder): Promise<bigint | undefined> {
      return chain?.nonceOf((await domainOf(contract)).verifyingContract, holder)
    },
    /** Returns a position as the chain has it; undefined without a chain reader. */
    async positionOf(positionId: string) {
      return chain?.positionOf((await domainOf('tradeRouter')).verifyingContract, BigInt(positionId))
    },
    /** Returns the vault shares that the next track of an agent requires; undefined without a chain reader. */
    async requiredShares(agentId: string) {
      return chain?.requiredShares((await domainOf('agentRegistry')).verifyingContract, BigInt(agentId))
    },
    /**
     * Returns the time that the chain has reached, in Unix seconds: the newest block's, or this machine's without a
     * chain reader.
     */
    now: async () => (chain ? chain.now() : machineTime()),
  }

  function assertVault(given: string): Address {
    const pinned = pins.vault === undefined ? undefined : [pins.vault].flat()
    if (pinned && !pinned.some(vault => vault.toLowerCase() === given.toLowerCase()))
      throw new UntrustedQuoteError('QUOTE_VAULT_MISMATCH', [{ field: 'vault', expected: pinned.join(' or '), given }])
    return getAddress(given)
  }
}

/** Returns this machine's time in Unix seconds. */
export const machineTime = () => Math.floor(Date.now() / 1000)

function assertSame(subject: string, facts: readonly QuoteMismatch[]): void {
  const mismatches = facts.filter(
    ({ expected, given }) => String(expected).toLowerCase() !== String(given).toLowerCase(),
  )
  if (mismatches.length > 0) throw new UntrustedQuoteError(`${subject}_NOT_CONFIRMED`, mismatches)
}

const missing = (what: string) =>
  new NotFoundError('NOT_DEPLOYED', `The service names no ${what}.`, {
    remedy: 'Pin it, or ask the operator to configure it.',
  })
