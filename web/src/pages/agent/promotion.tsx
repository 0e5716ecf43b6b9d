import { durationText } from '@agent-trading-service/protocol/duration'
import type { Schema } from '../../data/client.ts'
import { formatUsdc } from '../../format/amounts.ts'
import { Usdc } from '../../parts/figures.tsx'
import { Gauge } from '../../parts/gauge.tsx'
import { Badge, Hash } from '../../parts/text.tsx'
import { Duration } from '../../parts/times.tsx'
import { shareBps } from '../vaults.tsx'

type PromotionProps = {
  readiness: Schema['RiskState']['promotionReadiness']
  firstLoss: Schema['RiskState']['firstLoss']
  examination: Schema['RiskState']['examination']
}

/** The criteria of the promotion, each with how far the agent is, and what blocks it. */
export function Promotion({ readiness, firstLoss, examination }: PromotionProps) {
  const { minTradesRequired, tradesCompleted, promotionScoreRequired, alphaScore } = readiness
  const [elapsed, period] = [Number(readiness.evaluationElapsedSeconds), Number(readiness.evaluationPeriodSeconds)]
  return (
    <div class="gauges">
      <Criterion label="Trades" done={tradesCompleted} needed={minTradesRequired} isMet={readiness.meetsMinTrades} />
      <Progress
        label="Time on the track"
        bps={ratio(elapsed, period)}
        used={<Duration seconds={Math.min(elapsed, period)} />}
        limit={<Duration seconds={period} />}
        text={`${durationText(elapsed)} of ${durationText(period)}`}
      />
      {alphaScore !== null && (
        <Criterion
          label="Score"
          done={alphaScore}
          needed={promotionScoreRequired}
          isMet={readiness.meetsAlphaScore ?? false}
        />
      )}
      {firstLoss?.requiredUsdc && firstLoss.requiredUsdc !== '0' && (
        <Progress
          label="Locked for its losses"
          bps={Math.min(10_000, shareBps(firstLoss.lockedUsdc, firstLoss.requiredUsdc))}
          used={<Usdc value={firstLoss.lockedUsdc} unit={false} />}
          limit={<Usdc value={firstLoss.requiredUsdc} />}
          text={`${formatUsdc(firstLoss.lockedUsdc)} of ${formatUsdc(firstLoss.requiredUsdc)} USDC`}
        />
      )}
      {examination && (
        <Criterion
          label="Certificate of an examination"
          done={examination.certificate === null ? 0 : 1}
          needed={1}
          isMet={examination.certificate !== null}
        />
      )}
      {examination?.certificate && (
        <p class="fine">
          Claimed by the owner: <Hash value={examination.certificate} />
        </p>
      )}
      {readiness.eligible ? (
        <p>
          <Badge tone="good">eligible</Badge> Anybody may promote the agent now.
        </p>
      ) : (
        <ul class="blockers">
          {readiness.blockers.map(blocker => (
            <li key={blocker}>{sentenceOf(blocker)}</li>
          ))}
        </ul>
      )}
    </div>
  )
}

const ratio = (part: number, whole: number) => (whole === 0 ? 10_000 : Math.round((part * 10_000) / whole))

/** A blocker begins with the name of a contract error, which people need not read. */
function sentenceOf(blocker: string): string {
  const sentence = blocker.replace(/^\w+: /, '')
  const seconds = /^(\d+) of (\d+) seconds on the track so far/.exec(sentence)
  if (seconds) return `${durationText(Number(seconds[1]))} of ${durationText(Number(seconds[2]))} on the track so far`
  return sentence.charAt(0).toUpperCase() + sentence.slice(1)
}

type CriterionProps = { label: string; done: number; needed: number; isMet: boolean }

const Criterion = ({ label, done, needed, isMet }: CriterionProps) => (
  <Progress
    label={label}
    bps={isMet ? 10_000 : ratio(done, needed)}
    used={<span class="num">{done}</span>}
    limit={<span class="num">{needed}</span>}
    text={`${done} of ${needed}`}
  />
)

/** A gauge in which full is good. */
const Progress = (props: Omit<Parameters<typeof Gauge>[0], 'isBreached'>) => (
  <div class="progress">
    <Gauge {...props} />
  </div>
)
