import type {
  DeploymentFacts,
  PolicyLimits,
  PriceCheckFact,
  TrackFact,
  VaultPolicyFact,
} from '@agent-trading-service/protocol/deployment-facts'
import { durationText } from '@agent-trading-service/protocol/duration'
import { CapitalMode, Track } from '@agent-trading-service/protocol/enums'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import { deepestLossBps } from '@agent-trading-service/protocol/vault-track-config'
import { zeroAddress } from 'viem'

const policy = findingsOf('policy')

/** Beyond these, a limit hardly limits. */
const MAX_ENTRY_SLIPPAGE_BPS = 300
const MAX_EXIT_SLIPPAGE_BPS = 1_000
const MAX_DRAWDOWN_BPS = 5_000n
const MAX_TRADE_SIZE_BPS = 2_500n
const MAX_PRICE_AGE_SECONDS = 86_400n

type Fault = { severity: 'warning' | 'wrong'; sentence: string; fix: string }
const when = (isFault: boolean, severity: Fault['severity'], sentence: string, fix: string): Fault[] =>
  isFault ? [{ severity, sentence, fix }] : []

const toFindings = (subject: string, faults: readonly Fault[], fine: string): Finding[] =>
  faults.length === 0
    ? [policy.ok(subject, fine)]
    : faults.map(({ severity, sentence, fix }) => policy[severity](subject, sentence, fix))

/** Judges the limits that an operator can set so that they protect nothing. An embedded chain may have them. */
export function judgePolicies(
  facts: Pick<DeploymentFacts, 'tracks' | 'prices' | 'vaultPolicies'>,
  isEmbedded: boolean,
): Finding[] {
  if (isEmbedded) return [policy.ok('limits', 'The chain is embedded: its limits protect nobody.')]
  return [
    ...facts.tracks.flatMap(judgeTrack),
    ...facts.prices.flatMap(judgePriceChecks),
    ...facts.vaultPolicies.flatMap(judgeVaultPolicy),
  ]
}

function judgeTrack(track: TrackFact): Finding[] {
  const { vault, trackId, config, capitalMode, policy: limits } = track
  const subject = `${vault}, track ${trackId}`
  const change = `ats admin call 'VaultTrackRegistry.setVaultTrackConfig("${vault}", ${trackId}, {…})'`
  const isUnbounded = config.maxDrawdownBps === 0n || config.maxDrawdownBps > MAX_DRAWDOWN_BPS
  const faults = [
    ...when(
      isUnbounded,
      'wrong',
      `An agent may lose ${config.maxDrawdownBps === 0n ? 'all' : `${config.maxDrawdownBps} bps`} of its cap before it stops; expected at most ${MAX_DRAWDOWN_BPS} bps.`,
      change,
    ),
    ...when(
      config.maxTradeSizeBps > MAX_TRADE_SIZE_BPS,
      'warning',
      `One trade may be ${config.maxTradeSizeBps} bps of the cap; expected at most ${MAX_TRADE_SIZE_BPS}.`,
      change,
    ),
    ...when(config.maxDailyLossBps === 0n, 'warning', 'No daily loss stops an agent.', change),
    ...when(
      trackId === Track.Challenge && capitalMode === CapitalMode.Real,
      'warning',
      'The first track has real capital, so every stranger who registers trades with it.',
      `ats admin call 'VaultTrackRegistry.setVaultTrackCapitalMode("${vault}", ${trackId}, 0)'`,
    ),
    ...(limits === undefined ? [] : judgeLimits(vault, trackId, limits)),
    ...judgeRiskTerms(track),
  ]
  return toFindings(subject, faults, `The limits of ${subject} are within the expected bounds.`)
}

function judgeLimits(vault: string, trackId: number, limits: PolicyLimits): Fault[] {
  const change = `ats admin call 'TradePolicy.setLimits("${vault}", ${trackId}, {…})'`
  const { maxEntrySlippageBps, maxExitSlippageBps, minTradeUsdc, maxDeadlineSeconds } = limits
  const comparesNoPool = limits.maxSpotDeviationBps === 0 && limits.maxTwapDeviationBps === 0
  return [
    ...when(
      comparesNoPool,
      'wrong',
      'No trade compares the pool with the oracle, so a moved pool is traded with.',
      change,
    ),
    ...when(
      maxEntrySlippageBps > MAX_ENTRY_SLIPPAGE_BPS,
      'warning',
      `Entries may lose ${maxEntrySlippageBps} bps to slippage; expected at most ${MAX_ENTRY_SLIPPAGE_BPS}.`,
      change,
    ),
    ...when(
      maxExitSlippageBps > MAX_EXIT_SLIPPAGE_BPS,
      'warning',
      `Exits may lose ${maxExitSlippageBps} bps to slippage; expected at most ${MAX_EXIT_SLIPPAGE_BPS}.`,
      change,
    ),
    ...when(minTradeUsdc === 0n, 'warning', 'Trades have no least amount, so dust costs gas.', change),
    ...when(maxDeadlineSeconds === 0, 'warning', 'Signed intents may be valid for ever.', change),
  ]
}

/**
 * First-loss capital has to cover the drawdown limit and one trade's slippage, or the owner's loss ends before the
 * agent's.
 */
function judgeRiskTerms({ vault, trackId, config, capitalMode, policy: limits, risk }: TrackFact): Fault[] {
  if (risk === undefined || capitalMode !== CapitalMode.Real) return []
  const change = `ats admin call 'VaultTrackRegistry.setVaultTrackRiskTerms("${vault}", ${trackId}, {…})'`
  const { firstLossBps, maxWasteBps } = risk
  const possibleBps =
    Number(config.maxDrawdownBps) + (limits?.maxEntrySlippageBps ?? 0) + (limits?.maxExitSlippageBps ?? 0)
  const deepestBps = deepestLossBps(config, limits?.maxExitSlippageBps ?? 0)
  return [
    ...when(
      firstLossBps !== 0 && firstLossBps < deepestBps,
      'wrong',
      `A position can lose ${deepestBps} bps at its stop and to its exit's slippage; first-loss capital covers ${firstLossBps} bps.`,
      `ats admin call 'VaultTrackRegistry.setVaultTrackConfig("${vault}", ${trackId}, {…})' with a nearer maxStopLossBps`,
    ),
    ...when(
      firstLossBps < possibleBps,
      'warning',
      firstLossBps === 0
        ? "No first-loss capital answers for an agent's losses, so luck and sybils cost depositors money."
        : `First-loss capital covers ${firstLossBps} bps of the cap; an agent can lose ${possibleBps} bps.`,
      change,
    ),
    ...when(maxWasteBps === 0, 'warning', 'Nothing stops an agent whose fills give its gains away.', change),
  ]
}

function judgePriceChecks({ symbol, maxAge, maxDeviationBps, hasSecondOpinion }: PriceCheckFact): Finding[] {
  const change = `ats admin call 'PriceOracle.setAssetConfig("${symbol}", {…})'`
  const faults = [
    ...when(maxDeviationBps === 0n, 'wrong', `The updater may post any price of ${symbol}.`, change),
    ...when(
      maxAge === 0n || maxAge > MAX_PRICE_AGE_SECONDS,
      'warning',
      `Prices of ${symbol} are accepted for ${maxAge === 0n ? 'ever' : durationText(maxAge)}; expected at most ${durationText(MAX_PRICE_AGE_SECONDS)}.`,
      change,
    ),
    ...when(
      hasSecondOpinion === false,
      'warning',
      `Deposits and redemptions are priced with the posted price of ${symbol} alone, without its pool's average.`,
      `ats admin call 'PriceOracle.setSecondOpinion("${symbol}", {…})'`,
    ),
  ]
  return toFindings(symbol, faults, `The price of ${symbol} is bounded.`)
}

function judgeVaultPolicy({
  vault,
  holdingTime,
  maxMoveBps,
  liquidityPaused,
  isBreakerOpen,
  requestQueue,
}: VaultPolicyFact): Finding[] {
  const change = `ats admin call '${vault}.setLiquidityPolicy({…})'`
  const faults = [
    ...when(holdingTime === 0, 'warning', `Shares of ${vault} can be redeemed at once after a deposit.`, change),
    ...when(maxMoveBps === 0, 'warning', `No jump of the share price closes ${vault}.`, change),
    ...when(
      isBreakerOpen,
      'warning',
      `The share price of ${vault} has jumped, or its oracle and pools are far apart, so deposits and redemptions are closed.`,
      `compare the prices with a second source, then call checkpointSharePrice() of ${vault}`,
    ),
    ...when(
      liquidityPaused,
      'warning',
      `Deposits and redemptions of ${vault} are paused.`,
      `ats admin resume liquidity ${vault}`,
    ),
    ...when(
      requestQueue === zeroAddress,
      'warning',
      `${vault} names no request queue, so its depositors cannot leave requests while markets are shut.`,
      `ats admin call '${vault}.setRequestQueue("<contract>")'`,
    ),
  ]
  return toFindings(vault, faults, `${vault} makes and redeems shares within the expected bounds.`)
}
