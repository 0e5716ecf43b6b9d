import type { Address, Hex } from 'viem'
import { unreachable } from '../rpc/node-errors.ts'
import { blockRequest } from '../rpc/requests.ts'
import { callReader } from './call-service-reader.ts'
import type { Block, TradingChain } from './configured-chain.ts'

/** The value of an agent's allocation, in USDC base units; PnL is signed. */
export type Equity = {
  cap: bigint
  /** The part of the cap that is in open positions. */
  used: bigint
  /** The highest realized equity after a trade; never below `current`. */
  peak: bigint
  /** Cap plus realized and unrealized PnL. */
  current: bigint
  drawdownBps: bigint
  realized: bigint
  unrealized: bigint
  openCount: number
  /** Tokens without a fresh price; they count at their last known price. */
  staleTokens: readonly Address[]
}

/** The value of a vault, in base units of its asset; `totalShares` is in base units of the shares. */
export type VaultWorth = {
  totalAssets: bigint
  idleAssets: bigint
  totalShares: bigint
  /** The value of one whole share. */
  sharePrice: bigint
}

/** A value of the service reader. `isKnown` is false if a contract call failed. */
type ReaderValue<Value> = Omit<Value, 'openCount'> & { isKnown: boolean; openCount?: bigint }

/** Returns the reader's equity, or undefined if the contracts do not know it. */
export const toEquity = ({ isKnown, openCount, ...equity }: ReaderValue<Equity>): Equity | undefined =>
  isKnown ? { ...equity, openCount: Number(openCount) } : undefined

/** Returns the reader's worth, or undefined if the address is not a vault. */
export const toVaultWorth = ({ isKnown, ...worth }: ReaderValue<VaultWorth>): VaultWorth | undefined =>
  isKnown ? worth : undefined

/** Equities of agents and worths of vaults at one block. */
export type WorthReading = {
  block: Block & { hash: Hex }
  equities: Map<bigint, Equity>
  worths: Map<Address, VaultWorth>
  /** The agents for which the gas of the call was not sufficient. */
  remainingAgents: readonly bigint[]
}

/**
 * Reads the equities of agents and the worths of vaults at the newest block. Throws CHAIN_UNREACHABLE, also when a reorg
 * replaces the block before its hash is read.
 */
export async function readWorth(
  chain: TradingChain,
  { agents, vaults }: { agents: readonly bigint[]; vaults: readonly Address[] },
): Promise<WorthReading> {
  const { block, values } = await callReader(chain, 'equities', agents, vaults)
  const [equities, worths] = values
  const header = await chain.rpc.read(blockRequest(block.number), header => header !== null) // another node may be behind
  if (header === null || BigInt(header.timestamp) !== block.timestamp)
    throw unreachable(`block ${block.number} was replaced during the read`)
  return {
    block: { ...block, hash: header.hash },
    equities: mapKnown(agents, equities.map(toEquity)),
    worths: mapKnown(vaults, worths.map(toVaultWorth)),
    remainingAgents: agents.slice(equities.length),
  }
}

/** Returns a map from each key to the value at the same index, without undefined values. */
function mapKnown<Key, Value>(keys: readonly Key[], values: readonly (Value | undefined)[]): Map<Key, Value> {
  const known = new Map<Key, Value>()
  for (const [index, key] of keys.entries()) {
    const value = values[index]
    if (value !== undefined) known.set(key, value)
  }
  return known
}
