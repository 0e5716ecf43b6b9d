import type { Figures, Verdict } from './requirement.ts'

// What a rehearsal ends with. It has nothing that differs between two runs of the same tape, seed and agents: no hashes
// of transactions, no ports and no times of the machine.

/** The prices that were played: USD with 8 decimals, one for each bar. Times are Unix seconds, the ends of the bars. */
export type PlayedMarket = { times: number[]; prices: Record<string, bigint[]>; decimals: Record<string, number> }

/** A trade as `GET /agents/{agentId}/trades` lists it, without the ids of its transaction. */
export type ReportedTrade = {
  timestamp: string
  type: string
  source: string
  positionId: string
  symbol: string
  usdcAmount: string | null
  tokenAmount: string | null
  priceUsdc: string | null
  realizedPnlUsdc: string | null
  triggerType: string | null
  triggerBps: number | null
  note: string | null
}

/** An order as `GET /agents/{agentId}/orders` lists it, without the ids of its transactions. */
export type ReportedOrder = {
  placedAt: string
  endedAt: string | null
  side: string
  symbol: string
  usdcAmount: string | null
  exitBps: number
  condition: string
  price: string | null
  trailBps: number
  state: string
  endReason: string | null
  partsDone: number
  parts: number
  /** What it waits for, or why its last try was refused; null if nothing, or once it has ended. */
  waitsFor: string | null
  note: string | null
}

export type Promotion = {
  eligible: boolean
  alphaScore: number | null
  blockers: string[]
  [criterion: string]: unknown
}

/** The figures of `GET /agents/{agentId}/stats` that the report itself uses; it shows all of them. */
export type Statistics = {
  trades: number
  winRateBps: number | null
  sharpeMilli: number | null
  executionCost: { costUsdc: string; costBps: number | null }
  maxDrawdown: { ppm: number; from: string; to: string } | null
  pnlByDay: { day: string; realizedPnlUsdc: string }[]
  [figure: string]: unknown
}

/** What was recorded of one agent under test. */
export type AgentRecord = {
  name: string
  allocationUsdc: bigint
  /** The drawdown at which the track stops it; 0 without a limit. */
  maxDrawdownBps: number
  trades: ReportedTrade[]
  orders: ReportedOrder[]
  statistics: Statistics
  promotion: Promotion
  /** How often each code was refused. */
  refusals: Record<string, number>
  /** How often each rule failed in the checks of a quote. */
  limits: Record<string, number>
  /** The exit code of its program. */
  exitCode: number
}

/** One bar: USDC base units of the agent, and of its allocation spread equally over the tokens at the first bar. */
export type EquityPoint = { time: number; equityUsdc: bigint; holdUsdc: bigint }

export type AgentReport = AgentRecord & { equity: EquityPoint[]; figures: Figures; verdicts: Verdict[] }

export type Setting = {
  /** Where the prices come from: the tape's file, or the generator with its options. */
  market: string
  seed: number | null
  tapeHash: string
  /** What was changed while the tape was read. */
  notes: readonly string[]
  /** The versions of the service and of what runs it, by name. */
  versions: Record<string, string>
}

/** The result of a rehearsal; agents in the order of their return, best first. */
export type Report = Setting & { from: number; to: number; bars: number; symbols: string[]; agents: AgentReport[] }

const PPM = 1_000_000n

/** Returns the equity at each bar: cash after the trades up to it, and what the tokens held are worth at its prices. */
export function equityOf(market: PlayedMarket, { allocationUsdc, trades }: AgentRecord): EquityPoint[] {
  const symbols = Object.keys(market.prices)
  const ordered = [...trades].sort((a, b) => Number(a.timestamp) - Number(b.timestamp))
  const held = new Map<string, bigint>()
  let cash = allocationUsdc
  let next = 0
  return market.times.map((time, bar) => {
    for (; next < ordered.length && Number(ordered[next]?.timestamp) <= time; next++) {
      const { type, symbol, usdcAmount, tokenAmount } = ordered[next] as ReportedTrade
      if (usdcAmount === null || tokenAmount === null) continue
      const sign = isPurchase(type) ? 1n : -1n
      cash -= sign * BigInt(usdcAmount)
      held.set(symbol, (held.get(symbol) ?? 0n) + sign * BigInt(tokenAmount))
    }
    let equityUsdc = cash
    for (const [symbol, amount] of held)
      equityUsdc += (amount * priceAt(market, symbol, bar)) / 10n ** BigInt((market.decimals[symbol] ?? 18) + 2)
    const share = allocationUsdc / BigInt(symbols.length)
    const holdUsdc = symbols.reduce(
      (sum, symbol) => sum + (share * priceAt(market, symbol, bar)) / priceAt(market, symbol, 0),
      allocationUsdc - share * BigInt(symbols.length),
    )
    return { time, equityUsdc, holdUsdc }
  })
}

/** What a sale was caused by: a rule of the ladder, an order, the agent itself, or somebody else. */
export type ExitCause = 'ladder' | 'order' | 'hand' | 'others'
const CAUSES: Record<string, ExitCause> = { automation: 'ladder', order: 'order', intent: 'hand' }

/** Counts the sales of an agent by what caused them. */
export function exitsByCause(trades: readonly ReportedTrade[]): Record<ExitCause, number> {
  const counts = { ladder: 0, order: 0, hand: 0, others: 0 }
  for (const { type, source, usdcAmount } of trades)
    if (!isPurchase(type) && usdcAmount !== null) counts[CAUSES[source] ?? 'others']++
  return counts
}

/** Counts orders by what became of them, in words. */
export function orderOutcomes(orders: readonly ReportedOrder[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const order of orders) counts.set(outcomeOf(order), (counts.get(outcomeOf(order)) ?? 0) + 1)
  return counts
}

const ENDS: Record<string, string> = {
  cancelled: 'cancelled',
  replaced: 'replaced by another',
  expired: 'expired',
  voided: 'voided by a stop or a new key',
  positionClosed: 'ended with its position',
}

/** Returns what became of an order, in words. */
export const outcomeOf = ({ state, endReason, partsDone }: ReportedOrder): string => {
  if (state === 'filled') return 'filled'
  if (endReason !== null) return partsDone > 0 ? `partly filled, then ${ENDS[endReason]}` : (ENDS[endReason] ?? state)
  return partsDone > 0 ? 'partly filled, still waiting' : 'still waiting'
}

/** Tells whether a trade buys; the others with amounts sell. */
export const isPurchase = (type: string): boolean => type === 'PositionOpened' || type === 'PositionIncreased'

function priceAt({ prices }: PlayedMarket, symbol: string, bar: number): bigint {
  const price = prices[symbol]?.[bar]
  if (price === undefined || price <= 0n) throw new Error(`The tape has no price of ${symbol} at bar ${bar}.`)
  return price
}

/** Returns how far each point is below the highest one so far, in parts per million; never negative. */
export function drawdowns(values: readonly bigint[]): bigint[] {
  let peak = 0n
  return values.map(value => {
    if (value > peak) peak = value
    return peak === 0n ? 0n : ((peak - value) * PPM) / peak
  })
}

/** Returns the figures that a bar is compared with. */
export function figuresOf(record: AgentRecord, equity: readonly EquityPoint[]): Figures {
  const { allocationUsdc, statistics, promotion, refusals } = record
  const { equityUsdc, holdUsdc } = equity.at(-1) ?? { equityUsdc: allocationUsdc, holdUsdc: allocationUsdc }
  const change = (value: bigint) => (allocationUsdc === 0n ? 0n : ((value - allocationUsdc) * PPM) / allocationUsdc)
  const scaled = (value: number | null, factor: bigint) => (value === null ? null : BigInt(value) * factor)
  const deepest = drawdowns(equity.map(point => point.equityUsdc)).reduce((max, each) => (each > max ? each : max), 0n)
  return {
    return: change(equityUsdc),
    excess: change(equityUsdc) - change(holdUsdc),
    drawdown: deepest,
    winrate: scaled(statistics.winRateBps, 100n),
    pnl: equityUsdc - allocationUsdc,
    cost: BigInt(statistics.executionCost.costUsdc),
    trades: BigInt(statistics.trades) * PPM,
    refusals: BigInt(Object.values(refusals).reduce((sum, count) => sum + count, 0)) * PPM,
    score: scaled(promotion.alphaScore, PPM),
    sharpe: scaled(statistics.sharpeMilli, 1_000n),
  }
}

/** Returns the report of the agents; `judgeAgent` compares the figures of each with the bar. */
export function buildReport(
  setting: Setting,
  market: PlayedMarket,
  records: readonly AgentRecord[],
  judgeAgent: (figures: Figures) => Verdict[],
): Report {
  const agents = records.map(record => {
    const equity = equityOf(market, record)
    const figures = figuresOf(record, equity)
    return { ...record, equity, figures, verdicts: judgeAgent(figures) }
  })
  agents.sort((a, b) => Number((b.figures.return ?? 0n) - (a.figures.return ?? 0n)) || a.name.localeCompare(b.name))
  return {
    ...setting,
    from: market.times[0] ?? 0,
    to: market.times.at(-1) ?? 0,
    bars: market.times.length,
    symbols: Object.keys(market.prices),
    agents,
  }
}

/** Tells whether every agent meets the bar and its program ended well. */
export const passes = ({ agents }: Report): boolean =>
  agents.every(({ exitCode, verdicts }) => exitCode === 0 && verdicts.every(({ pass }) => pass))

/** Returns the report as JSON; integers beyond 32 bits are strings. */
export const reportJson = (report: Report): string =>
  `${JSON.stringify(report, (_, value) => (typeof value === 'bigint' ? `${value}` : value), 2)}\n`
