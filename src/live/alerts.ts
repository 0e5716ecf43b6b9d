import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import type { Address } from 'viem'
import type { Block } from '../chain/block-type.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { readLimitBreaches } from '../chain/read-limit-breaches.ts'
import { readVaultsAndTokens, type VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { readCurrentAgents } from '../history/tables/agents.ts'
import { readAgentsTradedSince } from '../history/tables/trades.ts'
import type { StreamEvent } from './event.ts'
import { createOpenPositions, type HeldMarket } from './open-positions.ts'
import type { EventLog } from './store.ts'

const DAY_SECONDS = 86_400
const RULES = ['drawdown', 'dailyLoss'] as const

/**
 * Activity since the last evaluation: agents that traded or whose allocation changed, tokens with new prices.
 * `timestamp` is the time of the newest block in Unix seconds.
 */
export type RecentActivity = {
  agentsChanged: ReadonlySet<number>
  tokensPriced: ReadonlySet<Address>
  timestamp: number
}

/** An alert that became active or inactive, and the events to publish. */
type AlertChange = { alert: string; isActive: boolean; events: StreamEvent[] }

export type Alerts = ReturnType<typeof createAlerts>

/**
 * Watches conditions that no log reports: breached limits of agents, and stale prices of the tokens they hold. The
 * current state is stored as a flag in the event log, so only changes are emitted, also across restarts.
 */
export function createAlerts({ chain, db, eventLog }: { chain: TradingChain; db: D1Database; eventLog: EventLog }) {
  const positions = createOpenPositions(db)
  /** The limits of each vault's tracks at the last evaluation. */
  let knownLimits = new Map<Address, string>()

  /**
   * Returns the events for what changed since the last evaluation; `commit` stores the new state. Throws
   * CHAIN_UNREACHABLE; then nothing has changed.
   */
  async function evaluate(activity: RecentActivity): Promise<{ events: StreamEvent[]; commit: () => void }> {
    const markets = await positions.markets(eventLog.position()?.block ?? -1)
    const { block, registered } = await readVaultsAndTokens(chain)
    const limits = new Map(registered.vaults.map(({ address, tracks }) => [address, limitsOf(tracks)]))
    const vaultsWithNewLimits = new Set(
      [...limits.keys()].filter(vault => limits.get(vault) !== knownLimits.get(vault)),
    )
    const changes = [
      ...evaluatePrices(markets, block, registered),
      ...(await evaluateLimits(markets, activity, vaultsWithNewLimits)),
    ]
    return {
      events: changes.flatMap(({ events }) => events),
      commit() {
        knownLimits = limits
        for (const { alert, isActive } of changes)
          if (isActive) eventLog.raiseAlert(alert)
          else eventLog.clearAlert(alert)
      },
    }
  }

  function evaluatePrices(markets: readonly HeldMarket[], block: Block, registered: VaultsAndTokens): AlertChange[] {
    const held = new Map(markets.map(market => [`stale ${market.vault} ${market.token}`, market]))
    const vaults = new Map(registered.vaults.map(vault => [vault.address, vault]))
    const changes: AlertChange[] = [...eventLog.activeAlerts]
      .filter(alert => alert.startsWith('stale ') && !held.has(alert))
      .map(alert => ({ alert, isActive: false, events: [] }))
    for (const [alert, { vault, token, agents }] of held) {
      const quote = registered.quoteIn(token, vaults.get(vault))
      if (quote.stale === eventLog.activeAlerts.has(alert)) continue
      const holders = new Set(agents.values())
      const symbol = registered.tokens.find(({ address }) => address === token)?.symbol ?? token
      const toEvent = (agentId: number): StreamEvent => ({
        type: quote.stale ? 'price-stale' : 'price-fresh',
        agentId,
        vault,
        data: { agentId: `${agentId}`, symbol, token, vault, updatedAt: `${quote.updatedAt}`, asOf: asOf(block) },
      })
      changes.push({ alert, isActive: quote.stale, events: [...holders].map(toEvent) })
    }
    return changes
  }

  async function evaluateLimits(
    markets: readonly HeldMarket[],
    { agentsChanged, tokensPriced, timestamp }: RecentActivity,
    vaultsWithNewLimits: ReadonlySet<Address>,
  ): Promise<AlertChange[]> {
    const day = Math.floor(timestamp / DAY_SECONDS)
    const affected = markets
      .filter(({ token, vault }) => tokensPriced.has(token) || vaultsWithNewLimits.has(vault))
      .flatMap(({ agents }) => [...agents.values()])
    // An agent without open positions may still exceed its daily loss.
    const tradedToday = vaultsWithNewLimits.size > 0 ? await readAgentsTradedSince(db, day * DAY_SECONDS) : []
    const breaching = [...eventLog.activeAlerts].flatMap(alert => /^breach (\d+) /.exec(alert)?.[1] ?? []).map(Number)
    const agents = await readCurrentAgents(db, [
      ...new Set([...agentsChanged, ...affected, ...tradedToday, ...breaching]),
    ])
    const { block, breaches } = await readLimitBreaches(chain, agents, BigInt(day))
    if (block === undefined) return []
    const vaultOf = new Map(agents.map(({ agentId, vault }) => [agentId, vault]))
    return breaches.flatMap(({ agentId, drawdownBps, maxDrawdownBps, ...state }) =>
      RULES.flatMap((rule): AlertChange[] => {
        const alert = `breach ${agentId} ${rule}`
        const isUnknown = rule === 'drawdown' && drawdownBps === undefined
        if (isUnknown || state[rule] === eventLog.activeAlerts.has(alert)) return []
        const data = {
          agentId: `${agentId}`,
          rule,
          breached: state[rule],
          ...(drawdownBps !== undefined && { currentDrawdownBps: Number(drawdownBps) }),
          maxDrawdownBps: Number(maxDrawdownBps),
          dailyLossUsedUsdc: `${state.dailyLossUsedUsdc}`,
          maxDailyLossUsdc: `${state.maxDailyLossUsdc}`,
          asOf: asOf(block),
        }
        return [
          { alert, isActive: state[rule], events: [{ type: 'risk', agentId, vault: vaultOf.get(agentId), data }] },
        ]
      }),
    )
  }

  return { applyTrades: positions.applyTrades, forgetPositions: positions.forget, evaluate }
}

/** Returns the limits of tracks as text, to compare them. */
const limitsOf = (tracks: readonly TrackConfig[]): string =>
  tracks.map(({ maxDrawdownBps, maxDailyLossBps }) => `${maxDrawdownBps} ${maxDailyLossBps}`).join()

const asOf = ({ number, timestamp }: Block) => ({ blockNumber: `${number}`, blockTimestamp: `${timestamp}` })
