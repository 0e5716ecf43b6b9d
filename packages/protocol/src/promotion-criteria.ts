import { formatUnits, type Hex } from 'viem'
import { AgentStatus, Track } from './enums.ts'
import type { TrackConfig } from './vault-track-config.ts'

/** The criteria of an agent's promotion to the next track, as `criteriaOf` of the PromotionCriteria returns them. */
export type PromotionCriteria = {
  trades: bigint
  minTrades: bigint
  /** When the agent entered its track, in Unix seconds. */
  enteredAt: bigint
  /** Seconds. */
  evaluationPeriod: bigint
  /** From 0 to 100. */
  score: bigint
  minScore: bigint
  drawdownBps: bigint
  /** 0 is no limit. */
  maxDrawdownBps: bigint
  /** The largest realized loss of a UTC day, in USDC base units. */
  dayLossUsdc: bigint
  /** 0 is no limit. */
  maxDayLossUsdc: bigint
  /** Open positions whose capital mode is not that of the next track. */
  openPositions: bigint
  /**
   * What the vault shares that answer for the agent's losses are worth, and what the next track requires: USDC base
   * units.
   */
  firstLossUsdc: bigint
  requiredFirstLossUsdc: bigint
}

/** The examination that an agent's track requires a certificate of, and the one that its owner has claimed: hashes. */
export type RequiredExamination = { examination: Hex; certificate: Hex | undefined }

/** An agent whose promotion is evaluated. Times are Unix seconds. */
type Candidate = {
  agent: { status: number; track: number; createdAt: bigint }
  allocation: { createdAt: bigint }
  trackConfig: Pick<TrackConfig, 'minTrades' | 'evaluationPeriod' | 'promotionScore'>
  /** Trades since the registration. */
  trades: bigint
  /** Undefined in a deployment that computes no score. */
  promotion: PromotionCriteria | undefined
  /** Undefined if the track requires none. */
  examination: RequiredExamination | undefined
}

/** How much of each criterion an agent meets; it may be promoted if there are no blockers. Times are in seconds. */
export type PromotionProgress = {
  trades: bigint
  minTrades: bigint
  meetsMinTrades: boolean
  elapsed: bigint
  evaluationPeriod: bigint
  meetsEvaluationPeriod: boolean
  /** Undefined in a deployment that computes no score. */
  score: bigint | undefined
  minScore: bigint
  meetsScore: boolean | undefined
  /** What is missing; with a score, the first word is the contract error that a promotion would fail with. */
  blockers: string[]
}

/** Returns how much of its promotion criteria an agent meets at a time in Unix seconds. */
export const promotionProgress = (candidate: Candidate, now: bigint): PromotionProgress =>
  candidate.promotion ? evaluate(candidate, candidate.promotion, now) : evaluateWithoutScore(candidate, now)

function evaluate({ agent, examination }: Candidate, criteria: PromotionCriteria, now: bigint): PromotionProgress {
  const { score, minScore, openPositions } = criteria
  const { drawdownBps, maxDrawdownBps, dayLossUsdc, maxDayLossUsdc, firstLossUsdc, requiredFirstLossUsdc } = criteria
  const progress = trackProgress(criteria, criteria.enteredAt, now)
  const meetsScore = score >= minScore
  const isPromotable = agent.status === AgentStatus.Active || agent.status === AgentStatus.Graduated
  const missing: Missing[] = [
    [!isPromotable, 'AgentNotPromotable: the agent is neither active nor graduated'],
    [agent.track >= Track.Prime, 'InvalidTrack: there is no further track'],
    [!progress.meetsMinTrades, `TooFewTrades: ${tradesSoFar(progress)}`],
    [!progress.meetsEvaluationPeriod, `EvaluationPeriodNotOver: ${timeSoFar(progress)}`],
    [
      maxDrawdownBps > 0n && drawdownBps > maxDrawdownBps,
      `DrawdownLimitBreached: the worst drawdown was ${drawdownBps} basis points, at most ${maxDrawdownBps} are allowed`,
    ],
    [
      maxDayLossUsdc > 0n && dayLossUsdc >= maxDayLossUsdc,
      `DailyLossLimitBreached: the largest loss of a day was ${dayLossUsdc} USDC base units, less than ${maxDayLossUsdc} are allowed`,
    ],
    [!meetsScore, `ScoreTooLow: the score is ${score}, ${minScore} is needed`],
    [openPositions > 0n, `OpenPositionsOfOtherMode: close the open positions first (${openPositions})`],
    [
      firstLossUsdc < requiredFirstLossUsdc,
      `FirstLossMissing: shares worth ${usdc(firstLossUsdc)} of ${usdc(requiredFirstLossUsdc)} USDC are locked; the owner signs LockFirstLoss`,
    ],
    [
      examination !== undefined && examination.certificate === undefined,
      `ExaminationMissing: the track requires a certificate of examination ${examination?.examination}; examine the agent in it, and its owner claims the certificate (ats claim)`,
    ],
  ]
  return { ...progress, score, minScore, meetsScore, blockers: blockersOf(missing) }
}

function evaluateWithoutScore({ agent, allocation, trackConfig, trades }: Candidate, now: bigint): PromotionProgress {
  const { promotionScore } = trackConfig
  const since = allocation.createdAt > 0n ? allocation.createdAt : agent.createdAt
  const progress = trackProgress({ ...trackConfig, trades }, since, now)
  const blockers = blockersOf([
    [agent.status !== AgentStatus.Active, 'The agent is not active'],
    [!progress.meetsMinTrades, tradesSoFar(progress)],
    [!progress.meetsEvaluationPeriod, timeSoFar(progress)],
    [promotionScore > 0n, 'The alpha score is not published yet'],
  ])
  return { ...progress, score: undefined, minScore: promotionScore, meetsScore: undefined, blockers }
}

type Missing = [isMissing: boolean, blocker: string]
const blockersOf = (missing: readonly Missing[]) => missing.filter(([is]) => is).map(([, blocker]) => blocker)

type TrackCriteria = Pick<PromotionCriteria, 'trades' | 'minTrades' | 'evaluationPeriod'>

/** Returns how much of the criteria that every deployment has an agent meets on its track. */
function trackProgress({ trades, minTrades, evaluationPeriod }: TrackCriteria, since: bigint, now: bigint) {
  const elapsed = now > since ? now - since : 0n
  const meetsMinTrades = trades >= minTrades
  return {
    trades,
    minTrades,
    meetsMinTrades,
    elapsed,
    evaluationPeriod,
    meetsEvaluationPeriod: elapsed >= evaluationPeriod,
  }
}

const usdc = (baseUnits: bigint) => formatUnits(baseUnits, 6)

const soFar = (done: bigint, needed: bigint, what: string) => `${done} of ${needed} ${what} so far`
const tradesSoFar = ({ trades, minTrades }: TrackCriteria) => soFar(trades, minTrades, 'trades')
const timeSoFar = ({ elapsed, evaluationPeriod }: ReturnType<typeof trackProgress>) =>
  soFar(elapsed, evaluationPeriod, 'seconds on the track')
