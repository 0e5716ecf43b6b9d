import type { Address, Hex } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest } from '../rpc/requests.ts'
import type { Block, TradingChain } from './chain.ts'
import { askReader } from './service-reader.ts'

/** What an agent's allocation has become; USDC base units, signed where PnL. */
export type Equity = {
  cap: bigint
  /** What of the cap is in open positions. */
  used: bigint
  /** The highest that realized equity was after a trade, and never below `current`. */
  peak: bigint
  /** Cap, realized and unrealized PnL. */
  current: bigint
  drawdownBps: bigint
  realized: bigint
  unrealized: bigint
  openCount: number
  /** Tokens without a fresh price: equity and unrealized PnL then count them at the last known one. */
  staleTokens: readonly Address[]
}

/** What the shares of a vault are worth; base units of the asset, of the shares where it says so. */
export type Worth = {
  totalAssets: bigint
  idleAssets: bigint
  totalShares: bigint
  /** What one whole share is worth. */
  sharePrice: bigint
}

/** What the reader says of something that may not be there. */
type Told<T> = Omit<T, 'openCount'> & { isKnown: boolean; openCount?: bigint }

/** The equity that the reader told; undefined where the contracts do not know. */
export function equityOf({ isKnown, openCount, ...equity }: Told<Equity>): Equity | undefined {
  return isKnown ? { ...equity, openCount: Number(openCount) } : undefined
}

/** The worth that the reader told; undefined where the contract is no such vault. */
export const worthOf = ({ isKnown, ...worth }: Told<Worth>): Worth | undefined => (isKnown ? worth : undefined)

/** Equities and worths of one block. */
export type Reading = {
  block: Block & { hash: Hex }
  equities: Map<bigint, Equity>
  worths: Map<Address, Worth>
  /** The agents that one call had no gas for. */
  rest: readonly bigint[]
}

/**
 * Reads what agents and vaults are worth in the newest block, and which block that is. Throws CHAIN_UNREACHABLE, also
 * where the block is no longer the chain's when it is asked for its hash.
 */
export async function readWorth(
  chain: TradingChain,
  { agents, vaults }: { agents: readonly bigint[]; vaults: readonly Address[] },
): Promise<Reading> {
  const { block, answers } = await askReader(chain, 'equities', agents, vaults)
  const [found, worths] = answers
  const header = await chain.rpc.read(blockRequest(block.number))
  if (header === null || BigInt(header.timestamp) !== block.timestamp)
    throw unreachable(`block ${block.number} was replaced during the read`)
  return {
    block: { ...block, hash: header.hash },
    equities: new Map(agents.flatMap((agent, index) => entry(agent, found[index] && equityOf(found[index])))),
    worths: new Map(vaults.flatMap((vault, index) => entry(vault, worths[index] && worthOf(worths[index])))),
    rest: agents.slice(found.length),
  }
}

const entry = <K, V>(key: K, value: V | undefined): [K, V][] => (value === undefined ? [] : [[key, value]])
