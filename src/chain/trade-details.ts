import type { Address } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import {
  buildTrade,
  firedRuleIndex,
  openedPosition,
  type Trade,
  type TradeEvent,
  type TradeLog,
} from '../protocol/trade-events.ts'
import type { ExitRule } from '../protocol/typed-data.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { type Chain, maybe, read, type TradingChain } from './chain.ts'

/** What never changes of a position. */
export type TradedPosition = { token: Address; vault: Address }

/** Positions of one `eth_call`: a page stays far below the gas that nodes give a call. */
const PAGE = 150

/**
 * The records of trades. `positions` holds what is known of their positions and learns the others, from the events or
 * else from the chain, which is also asked for the rules that fired: those keep their place in the ladder. Throws
 * CHAIN_UNREACHABLE, also where the node is behind the events.
 */
export async function completeTrades<log extends TradeLog>(
  chain: TradingChain,
  events: readonly TradeEvent<log>[],
  positions: Map<bigint, TradedPosition>,
  timeOf: (log: log) => bigint,
): Promise<Trade[]> {
  for (const event of events) {
    const opened = openedPosition(event)
    if (opened) positions.set(event.positionId, opened)
  }
  const unknown = events.filter(({ type, positionId }) => type === 'ExitExecuted' || !positions.has(positionId))
  const ladders = await readLadders(chain, [...new Set(unknown.map(({ positionId }) => positionId))], positions)
  const decimalsOf = await readDecimals(
    chain,
    events.flatMap(({ positionId }) => positions.get(positionId)?.token ?? []),
  )
  return events.map(event => {
    const { positionId, log } = event
    const position = positions.get(positionId)
    if (position === undefined) throw unreachable(`the node has events of position ${positionId}, but not the position`)
    const { token, vault } = position
    const rule = ruleOf(event, ladders)
    return buildTrade(event, { token, vault, decimals: decimalsOf(token), rule, timestamp: timeOf(log) })
  })
}

type Ladder = { nextRuleIndex: number; exitRules: readonly ExitRule[] }

function ruleOf(event: TradeEvent, ladders: ReadonlyMap<bigint, Ladder>): ExitRule | undefined {
  const index = firedRuleIndex(event)
  if (index === undefined) return undefined
  const ladder = ladders.get(event.positionId)
  const rule = ladder?.exitRules[index]
  if (ladder === undefined || rule === undefined || ladder.nextRuleIndex <= index)
    throw unreachable(`the node has the exit of position ${event.positionId}, but not its new state`)
  return rule
}

/** Reads positions with their ladders; what they are is added to `positions`. */
async function readLadders(
  chain: TradingChain,
  ids: readonly bigint[],
  positions: Map<bigint, TradedPosition>,
): Promise<Map<bigint, Ladder>> {
  const manager = { address: chain.trading.PositionManager, abi: positionManagerAbi } as const
  const ladders = new Map<bigint, Ladder>()
  for (let from = 0; from < ids.length; from += PAGE) {
    const page = ids.slice(from, from + PAGE)
    const { results } = await read(
      chain,
      page.flatMap(id => [
        { ...manager, functionName: 'getPosition', args: [id] } as const,
        { ...manager, functionName: 'getExitRules', args: [id] } as const,
      ]),
    )
    for (const [index, id] of page.entries()) {
      const record = maybe(results[2 * index] as never) as (TradedPosition & { nextRuleIndex: number }) | undefined
      const exitRules = maybe(results[2 * index + 1] as never) as readonly ExitRule[] | undefined
      if (record === undefined || exitRules === undefined) continue
      const { token, vault, nextRuleIndex } = record
      positions.set(id, { token, vault })
      ladders.set(id, { nextRuleIndex, exitRules })
    }
  }
  return ladders
}

/** Decimals of tokens that were traded; they never change. */
const learned = new WeakMap<object, Map<Address, number>>()

/** Keeps decimals that were read with something else. */
export function learnDecimals({ contracts }: Chain, tokens: readonly { address: Address; decimals: number }[]) {
  const decimals = learned.get(contracts) ?? new Map<Address, number>()
  learned.set(contracts, decimals)
  for (const token of tokens) decimals.set(token.address, token.decimals)
  return decimals
}

async function readDecimals(
  chain: TradingChain,
  tokens: readonly Address[],
): Promise<(token: Address) => number | undefined> {
  const decimals = learnDecimals(chain, [])
  const missing = [...new Set(tokens)].filter(token => !decimals.has(token))
  if (missing.length > 0) {
    const registry = { address: chain.contracts.TokenRegistry, abi: tokenRegistryAbi } as const
    const calls = missing.map(token => ({ ...registry, functionName: 'tokenDecimals', args: [token] }) as const)
    const { results } = await read(chain, calls as readonly unknown[])
    for (const [index, token] of missing.entries()) {
      const value = maybe(results[index] as never) as number | undefined
      if (value !== undefined) decimals.set(token, value)
    }
  }
  return token => decimals.get(token)
}
