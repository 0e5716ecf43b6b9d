import { CapitalMode } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import {
  buildTrade,
  firedRuleIndex,
  openedPosition,
  type Trade,
  type TradeEvent,
  type TradeLog,
} from '@agent-trading-service/protocol/trade-events'
import type { Address } from 'viem'
import { batchesOf } from '../concurrency.ts'
import { unreachable } from '../rpc/node-errors.ts'
import type { TradingChain } from './configured-chain.ts'
import { positionManager, tokenRegistry, tradeRouter } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/** The facts of a position that never change. */
export type TradedPosition = {
  token: Address
  vault: Address
  /** A `CapitalMode`; undefined in a deployment without the extension. */
  capitalMode: number | undefined
}

/** Positions per `eth_call`: far below the gas that nodes allow for a call. */
const POSITIONS_PER_CALL = 150

/**
 * Returns the trades of events. `positions` has the positions that are known; others are added to it, from the events
 * or from the chain. Rules that fired are read from the chain too, because the ladder keeps them. Throws
 * CHAIN_UNREACHABLE, also when the node is behind the events.
 */
export async function completeTrades<log extends TradeLog>(
  chain: TradingChain,
  events: readonly TradeEvent<log>[],
  positions: Map<bigint, TradedPosition>,
  timeOf: (log: log) => bigint,
): Promise<Trade[]> {
  const opened = events.flatMap(event => {
    const position = openedPosition(event)
    return position ? [{ ...event, ...position }] : []
  })
  for (const { positionId, token, vault } of opened) positions.set(positionId, { token, vault, capitalMode: undefined })
  const incomplete = events.filter(({ type, positionId }) => type === 'ExitExecuted' || !positions.has(positionId))
  const ladders = await readLadders(chain, [...new Set(incomplete.map(({ positionId }) => positionId))], positions)
  const tokens = events.flatMap(({ positionId }) => positions.get(positionId)?.token ?? [])
  const { decimalsOf, hasCapitalModes } = await readTradeFacts(chain, tokens)
  if (hasCapitalModes)
    for (const { positionId, token, vault, opensSimulated } of opened)
      positions.set(positionId, {
        token,
        vault,
        capitalMode: opensSimulated ? CapitalMode.Simulated : CapitalMode.Real,
      })
  return events.map(event => {
    const { positionId, log } = event
    const position = positions.get(positionId)
    if (position === undefined) throw unreachable(`the node has events of position ${positionId}, but not the position`)
    return buildTrade(event, {
      token: position.token,
      vault: position.vault,
      capitalMode: position.capitalMode,
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
  for (const page of batchesOf(positionIds, POSITIONS_PER_CALL)) {
    const { values } = await readTree(
      chain,
      page.map(positionId => ({
        positionId,
        record: optional(call(positionManager(chain), 'getPosition', [positionId])),
        exitRules: optional(call(positionManager(chain), 'getExitRules', [positionId])),
        capitalMode: optional(call(positionManager(chain), 'capitalModeOf', [positionId])),
      })),
    )
    for (const { positionId, record, exitRules, capitalMode } of values) {
      if (record === undefined || exitRules === undefined) continue
      const { token, vault, nextRuleIndex } = record
      positions.set(positionId, { token, vault, capitalMode })
      ladders.set(positionId, { nextRuleIndex, exitRules })
    }
  }
  return ladders
}

async function readTradeFacts(
  chain: TradingChain,
  tokens: readonly Address[],
): Promise<{ decimalsOf: (token: Address) => number | undefined; hasCapitalModes: boolean }> {
  const { hasCapitalModes: knownModes, decimals: known } = chain.memory
  const unknown = [...new Set(tokens)].filter(token => !known.has(token))
  let hasCapitalModes = knownModes ?? false
  if (unknown.length > 0 || (knownModes === undefined && tokens.length > 0)) {
    const { values } = await readTree(chain, {
      tokens: unknown.map(token => ({
        token,
        decimals: optional(call(tokenRegistry(chain), 'tokenDecimals', [token])),
      })),
      tradePolicy: knownModes === undefined ? optional(call(tradeRouter(chain), 'tradePolicy', [])) : undefined,
    })
    for (const { token, decimals } of values.tokens) if (decimals !== undefined) known.set(token, decimals)
    if (knownModes === undefined) hasCapitalModes = values.tradePolicy !== undefined
    chain.memory.hasCapitalModes = hasCapitalModes
  }
  return { decimalsOf: token => known.get(token), hasCapitalModes }
}
