import { MULTIPLIER_UPDATED } from '@agent-trading-service/protocol/corporate-actions'
import { Track } from '@agent-trading-service/protocol/enums'
import { strictestMaxAge, toPriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { TrackConfig } from '@agent-trading-service/protocol/vault-track-config'
import type { Address } from 'viem'
import { sourceOf } from '../chain/carried-prices.ts'
import type { Block, TradingChain } from '../chain/configured-chain.ts'
import { mandateVault, priceOracle, vaultTrackRegistry } from '../chain/contracts.ts'
import { readLimitBreaches } from '../chain/read-limit-breaches.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { listedVaults, vaultListCalls } from '../chain/read-vaults-and-tokens.ts'
import { descriptionFrom, tokenFactCalls, toTokenFacts } from '../chain/token-facts.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { nowAt } from '../clock.ts'
import { readCurrentAgents } from '../history/tables/agents.ts'
import { type OpenPosition, readOpenPositions } from '../history/tables/positions.ts'
import { readRows } from '../history/tables/table.ts'
import { readAgentsTradedSince } from '../history/tables/trades.ts'
import { presentMarketSession } from '../resources/price.ts'
import { presentMultiplier } from '../resources/token.ts'
import type { StreamEvent } from './event.ts'
import type { EventLog } from './store.ts'

const DAY_SECONDS = 86_400
const TRACK_IDS = Object.values(Track).map(BigInt)
const RULES = ['drawdown', 'dailyLoss'] as const

/**
 * Activity since the last evaluation: agents that traded or whose allocation changed, tokens with new prices.
 * `timestamp` is the time of the newest block in Unix seconds.
 */
type RecentActivity = {
  agentsChanged: ReadonlySet<number>
  tokensPriced: ReadonlySet<Address>
  timestamp: number
}

/** An alert that became active or inactive, and the events to publish. */
type AlertChange = { alert: string; isActive: boolean; events: StreamEvent[] }

export type Alerts = ReturnType<typeof createAlerts>

/**
 * Watches conditions that no log reports: breached limits of agents, stale prices of the tokens they hold, and
 * corporate actions, which also concern those who only watch the token. The current state is stored as a flag in the
 * event log, so only changes are emitted, also across restarts.
 */
export function createAlerts({ chain, db, eventLog }: { chain: TradingChain; db: D1Database; eventLog: EventLog }) {
  const positions = createOpenPositions(db)
  /** The limits of each vault's tracks at the last evaluation. */
  let knownLimits = new Map<Address, string>()
  let registeredVaults: readonly Address[] = Object.values(chain.vaults)
  /** Tokens that may have a corporate action ahead or just behind them: read once, and added to by announcements. */
  let announcedBefore: readonly Address[] | undefined
  const announced = new Set<Address>()
  const readAnnouncing = async (): Promise<Address[]> => {
    announcedBefore ??= await readAnnouncingTokens(db, chain.contracts.TokenRegistry)
    return [...announcedBefore, ...announced]
  }

  /**
   * Returns the events for what changed since the last evaluation; `commit` stores the new state. Throws
   * CHAIN_UNREACHABLE; then nothing has changed.
   */
  async function evaluate(activity: RecentActivity): Promise<{ events: StreamEvent[]; commit: () => void }> {
    const markets = await positions.markets(eventLog.position()?.block ?? -1)
    const watched = await readWatched(markets)
    const limits = new Map(watched.vaults.map(({ address, tracks }) => [address, limitsOf(tracks)]))
    const vaultsWithNewLimits = new Set(
      [...limits.keys()].filter(vault => limits.get(vault) !== knownLimits.get(vault)),
    )
    const changes = [
      ...evaluatePrices(markets, watched),
      ...evaluateActions(markets, watched),
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

  /** Reads the limits of every vault, and prices and facts of tokens that agents hold or that announced a change. */
  async function readWatched(markets: readonly HeldMarket[]) {
    const held = [...new Set([...markets.map(({ token }) => token), ...(await readAnnouncing())])]
    for (;;) {
      const vaults = new Set([...registeredVaults, ...markets.map(({ vault }) => vault)])
      const { block, values } = await readTree(chain, {
        registered: vaultListCalls(chain),
        vaults: [...vaults].map(address => ({
          address,
          maxPriceAge: optional(call(mandateVault(address), 'maxPriceAge', [])),
          tracks: TRACK_IDS.map(track =>
            optional(call(vaultTrackRegistry(chain), 'getVaultTrackConfig', [address, track])),
          ),
        })),
        tokens: held.map(token => ({
          token,
          round: optional(call(priceOracle(chain), 'latestRoundData', [token])),
          maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [token])),
          facts: tokenFactCalls(chain, token),
        })),
      })
      registeredVaults = await listedVaults(chain, values.registered)
      if (registeredVaults.every(vault => vaults.has(vault)))
        return { block, ...values, symbolOf: await symbolsOf(chain, held) }
    }
  }

  function evaluatePrices(
    markets: readonly HeldMarket[],
    { block, vaults, tokens, symbolOf }: Awaited<ReturnType<typeof readWatched>>,
  ): AlertChange[] {
    const held = new Map(markets.map(market => [`stale ${market.vault} ${market.token}`, market]))
    const prices = new Map(tokens.map(price => [price.token, price]))
    const maxAges = new Map(vaults.map(({ address, maxPriceAge = 0n }) => [address, maxPriceAge]))
    const changes: AlertChange[] = [...eventLog.activeAlerts]
      .filter(alert => alert.startsWith('stale ') && !held.has(alert))
      .map(alert => ({ alert, isActive: false, events: [] }))
    for (const [alert, { vault, token, agents }] of held) {
      const { round, maxAge = 0n, facts } = prices.get(token) ?? {}
      const at = nowAt(block)
      const quote = toPriceQuote(round, strictestMaxAge([maxAge, maxAges.get(vault) ?? 0n]), { at })
      // A price that comes with each trade grows old while nobody trades, and nothing is wrong.
      const isStale = quote.stale && sourceOf(chain, token).kind === 'updater'
      if (isStale === eventLog.activeAlerts.has(alert)) continue
      const holders = new Set(agents.values())
      const symbol = symbolOf(token)
      const toEvent = (agentId: number): StreamEvent => ({
        type: isStale ? 'price-stale' : 'price-fresh',
        agentId,
        vault,
        data: {
          agentId: `${agentId}`,
          symbol,
          token,
          vault,
          updatedAt: `${quote.updatedAt}`,
          market: presentMarketSession(descriptionFrom(facts?.description).session, quote.at),
          asOf: asOf(block),
        },
      })
      changes.push({ alert, isActive: isStale, events: [...holders].map(toEvent) })
    }
    return changes
  }

  /**
   * Returns the corporate actions that were announced, took effect or were replaced. No log says when one takes effect.
   * Its alert stays active for a day, so that no cycle reports it again.
   */
  function evaluateActions(
    markets: readonly HeldMarket[],
    { block, tokens, symbolOf }: Awaited<ReturnType<typeof readWatched>>,
  ): AlertChange[] {
    const facts = new Map(tokens.map(({ token, facts }) => [token, toTokenFacts(facts, block.timestamp)]))
    const isRecent = (effectiveAt: bigint) => effectiveAt + BigInt(DAY_SECONDS) > block.timestamp
    const told = [...eventLog.activeAlerts].flatMap(alert => toToldAction(alert) ?? [])
    const changes: AlertChange[] = told
      .filter(({ effectiveAt }) => !isRecent(effectiveAt))
      .map(({ alert }) => ({ alert, isActive: false, events: [] }))
    /** Those who hold a token in a vault, and last, without a vault, those who watch it. */
    const audiences = [
      ...markets.map(({ vault, token, agents }) => ({
        vault,
        token,
        to: [...new Set(agents.values())].map(agentId => ({ agentId, vault, token: undefined })),
      })),
      ...tokens.map(({ token }) => ({ vault: '', token, to: [{ agentId: undefined, vault: undefined, token }] })),
    ]
    for (const { vault, token, to } of audiences) {
      const { multiplier, pending, changedAt } = facts.get(token) ?? {}
      if (multiplier === undefined || changedAt === undefined) continue
      const toldOfToken = told.filter(each => each.vault === vault && each.token === token)
      // Code of an issuer that says something else in each block must not fill the log.
      if (toldOfToken.length >= MAX_TOLD_ACTIONS) continue
      const effective = isRecent(changedAt) ? { multiplier, effectiveAt: changedAt } : undefined
      const toEvents = (state: ActionState, action: { multiplier: bigint; effectiveAt: bigint }) =>
        to.map(
          (recipient): StreamEvent => ({
            ...recipient,
            type: 'corporateAction',
            data: {
              ...(recipient.agentId !== undefined && { agentId: `${recipient.agentId}` }),
              symbol: symbolOf(token),
              token,
              state,
              newMultiplier: presentMultiplier(action.multiplier),
              effectiveAt: `${action.effectiveAt}`,
              asOf: asOf(block),
            },
          }),
        )
      const now = [
        ...(pending ? [{ state: 'announced' as const, ...pending }] : []),
        ...(effective ? [{ state: 'effective' as const, ...effective }] : []),
      ].map(({ state, ...action }) => ({ state, action, alert: alertOf({ vault, token, state, ...action }) }))
      for (const { state, action, alert } of now)
        if (!eventLog.activeAlerts.has(alert)) changes.push({ alert, isActive: true, events: toEvents(state, action) })
      for (const { alert, ...action } of toldOfToken) {
        if (action.state !== 'announced' || !isRecent(action.effectiveAt) || now.some(each => each.alert === alert))
          continue
        const wasReplaced = action.effectiveAt !== changedAt || action.multiplier !== multiplier
        changes.push({ alert, isActive: false, events: wasReplaced ? toEvents('replaced', action) : [] })
      }
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

  /** Notes tokens that announced a change of their multiplier, by events of the index. */
  function noteAnnouncements(tokens: readonly Address[]) {
    for (const token of tokens) announced.add(token)
  }

  return { applyTrades: positions.applyTrades, noteAnnouncements, forgetPositions: positions.forget, evaluate }
}

/** How many corporate actions of a token are told to the same agents within a day. */
const MAX_TOLD_ACTIONS = 32

const ANNOUNCING = `SELECT DISTINCT contract FROM events INDEXED BY events_contract
  WHERE contract IN (SELECT args ->> 'token' FROM events INDEXED BY events_contract WHERE contract = ?1 AND name = 'TokenRegistered')
  AND name = '${MULTIPLIER_UPDATED}' AND CAST(args ->> 'effectiveAtTimestamp' AS INTEGER) >= ?2`

/** Reads the listed tokens whose last announced changes take effect later, or did so within the last days. */
async function readAnnouncingTokens(db: D1Database, tokenRegistry: Address): Promise<Address[]> {
  const since = Math.floor(Date.now() / 1000) - 2 * DAY_SECONDS
  const rows = await readRows<{ contract: Address }>(db, ANNOUNCING, tokenRegistry, since)
  return rows.map(({ contract }) => contract)
}

type ActionState = 'announced' | 'effective' | 'replaced'
type ToldAction = { vault: string; token: string; state: string; effectiveAt: bigint; multiplier: bigint }

const alertOf = ({ vault, token, state, effectiveAt, multiplier }: ToldAction) =>
  `action ${vault} ${token} ${state} ${effectiveAt} ${multiplier}`

/** Returns the corporate action that an alert is about; undefined for other alerts. */
function toToldAction(alert: string): (ToldAction & { alert: string }) | undefined {
  const [kind, vault = '', token = '', state = '', effectiveAt = '', multiplier = ''] = alert.split(' ')
  if (kind !== 'action') return undefined
  return { alert, vault, token, state, effectiveAt: BigInt(effectiveAt), multiplier: BigInt(multiplier) }
}

/** Returns the limits of tracks as text, to compare them. */
const limitsOf = (tracks: readonly (TrackConfig | undefined)[]): string =>
  tracks.map(track => `${track?.maxDrawdownBps} ${track?.maxDailyLossBps}`).join()

const asOf = ({ number, timestamp }: Block) => ({ blockNumber: `${number}`, blockTimestamp: `${timestamp}` })

/** A token in a vault, and the agents of the open positions in it by the position's id. */
type HeldMarket = { vault: Address; token: Address; agents: Map<bigint, number> }

/** Holds the open positions at the log's position. They are read once; trades and reorgs change them from then on. */
export function createOpenPositions(db: D1Database) {
  let positions: Map<bigint, OpenPosition> | undefined
  const markets = new Map<string, HeldMarket>()
  /** Agents with trades that a reorg withdrew. */
  const outdatedAgents = new Set<number>()

  function add(position: OpenPosition) {
    const { positionId, agentId, vault, token } = position
    remove(positionId) // after a reorg, another agent may have the id
    const key = keyOf(position)
    const market = markets.get(key) ?? { vault, token, agents: new Map<bigint, number>() }
    markets.set(key, market)
    market.agents.set(positionId, agentId)
    positions?.set(positionId, position)
  }

  function remove(positionId: bigint) {
    const position = positions?.get(positionId)
    if (position === undefined) return
    positions?.delete(positionId)
    const market = markets.get(keyOf(position))
    market?.agents.delete(positionId)
    if (market?.agents.size === 0) markets.delete(keyOf(position))
  }

  return {
    /** Updates the open positions. The trades are in order. */
    applyTrades(trades: readonly Trade[]) {
      if (positions === undefined) return
      for (const { type, positionId, agentId, token, vault, positionPnlUsdc } of trades) {
        if (type === 'PositionOpened') add({ positionId, agentId: Number(agentId), token, vault })
        if (positionPnlUsdc !== undefined) remove(positionId)
      }
    },

    /** Forgets the positions of agents, or all of them. A reorg may have opened or closed some. */
    forget(agentIds: readonly number[] | 'all') {
      if (agentIds === 'all') positions = undefined
      else for (const agentId of agentIds) outdatedAgents.add(agentId)
    },

    /** Returns the markets with open positions after block `through`, the log's position. Reads what is not known. */
    async markets(through: number): Promise<readonly HeldMarket[]> {
      if (positions === undefined) {
        const all = await readOpenPositions(db, through)
        positions = new Map()
        markets.clear()
        for (const position of all) add(position)
      } else if (outdatedAgents.size > 0) {
        const theirs = await readOpenPositions(db, through, [...outdatedAgents])
        for (const { positionId, agentId } of positions.values()) if (outdatedAgents.has(agentId)) remove(positionId)
        for (const position of theirs) add(position)
      }
      outdatedAgents.clear()
      return [...markets.values()]
    },
  }
}

const keyOf = ({ vault, token }: Pick<OpenPosition, 'vault' | 'token'>) => `${vault} ${token}`
