import type { Address } from 'viem'
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
import type { Chain, TradingChain } from './chain.ts'
import { positionManager, tokenRegistry } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/** The facts of a position that never change. */
export type TradedPosition = { token: Address; vault: Address }

/** Positions per `eth_call`: far below the gas that nodes allow for a call. */
const POSITIONS_PER_CALL = 150

/**
 * Returns the trades of events. `positions` has the positions that are known; others are added to it, from the events or
 * from the chain. Rules that fired are read from the chain too, because the ladder keeps them. Throws CHAIN_UNREACHABLE,
 * also when the node is behind the events.
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
  const incomplete = events.filter(({ type, positionId }) => type === 'ExitExecuted' || !positions.has(positionId))
  const ladders = await readLadders(chain, [...new Set(incomplete.map(({ positionId }) => positionId))], positions)
  const tokens = events.flatMap(({ positionId }) => positions.get(positionId)?.token ?? [])
  const decimalsOf = await readDecimals(chain, tokens)
  return events.map(event => {
    const { positionId, log } = event
    const position = positions.get(positionId)
    if (position === undefined) throw unreachable(`the node has events of position ${positionId}, but not the position`)
    return buildTrade(event, {
      token: position.token,
      vault: position.vault,
      decimals: decimalsOf(position.token),
      rule: findFiredRule(event, ladders),
      timestamp: timeOf(log),
    })
  })
}

type Ladder = { nextRuleIndex: number; exitRules: readonly ExitRule[] }

function findFiredRule(event: TradeEvent, ladders: ReadonlyMap<bigint, Ladder>): ExitRule | undefined {
  const index = firedRuleIndex(event)
  if (index === undefined) return undefined
  const ladder = ladders.get(event.positionId)
  const rule = ladder?.exitRules[index]
  if (ladder === undefined || rule === undefined || ladder.nextRuleIndex <= index)
    throw unreachable(`the node has the exit of position ${event.positionId}, but not its new state`)
  return rule
}

/** Reads the ladders of positions, and adds the positions to `positions`. */
async function readLadders(
  chain: TradingChain,
  positionIds: readonly bigint[],
  positions: Map<bigint, TradedPosition>,
): Promise<Map<bigint, Ladder>> {
  const ladders = new Map<bigint, Ladder>()
  for (let from = 0; from < positionIds.length; from += POSITIONS_PER_CALL) {
    const { values } = await readTree(
      chain,
      positionIds.slice(from, from + POSITIONS_PER_CALL).map(positionId => ({
        positionId,
        record: optional(call(positionManager(chain), 'getPosition', [positionId])),
        exitRules: optional(call(positionManager(chain), 'getExitRules', [positionId])),
      })),
    )
    for (const { positionId, record, exitRules } of values) {
      if (record === undefined || exitRules === undefined) continue
      const { token, vault, nextRuleIndex } = record
      positions.set(positionId, { token, vault })
      ladders.set(positionId, { nextRuleIndex, exitRules })
    }
  }
  return ladders
}

/** Decimals of traded tokens by the configured contracts. They never change. */
const knownDecimals = new WeakMap<object, Map<Address, number>>()

function decimalsIn({ contracts }: Chain): Map<Address, number> {
  const decimals = knownDecimals.get(contracts) ?? new Map<Address, number>()
  knownDecimals.set(contracts, decimals)
  return decimals
}

/** Records decimals that another read returned, so that they need not be read again. */
export function learnDecimals(chain: Chain, tokens: readonly { address: Address; decimals: number }[]): void {
  const decimals = decimalsIn(chain)
  for (const token of tokens) decimals.set(token.address, token.decimals)
}

async function readDecimals(
  chain: TradingChain,
  tokens: readonly Address[],
): Promise<(token: Address) => number | undefined> {
  const known = decimalsIn(chain)
  const unknown = [...new Set(tokens)].filter(token => !known.has(token))
  if (unknown.length > 0) {
    const { values } = await readTree(
      chain,
      unknown.map(token => ({ token, decimals: optional(call(tokenRegistry(chain), 'tokenDecimals', [token])) })),
    )
    for (const { token, decimals } of values) if (decimals !== undefined) known.set(token, decimals)
  }
  return token => known.get(token)
}
