import type { Schema } from '../../data/client.ts'
import { formatBps, formatUsd } from '../../format/amounts.ts'
import { formatLocal } from '../../format/time.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Percent, Price, Usdc } from '../../parts/figures.tsx'
import { Badge } from '../../parts/text.tsx'

type Automation = Schema['Automation']
type PendingExit = Schema['PendingExit']
type Position = Schema['AgentPosition']

const ruleName = (type: 'StopLoss' | 'TakeProfit') => (type === 'StopLoss' ? 'Stop-loss' : 'Take-profit')
const soldShare = (exitBps: number) => (exitBps === 10_000 ? 'everything' : `${formatBps(exitBps, 0)} of what is left`)

/** Says what a pending rule waits for. */
export function waitOf(rule: PendingExit, { lastOutcome, price, market, keeperEnabled }: Automation): string {
  if (!keeperEnabled) return 'somebody to fire it: this service runs no keeper'
  if (price.stale)
    return DEFERRALS[
      lastOutcome?.outcome === 'deferred'
        ? (lastOutcome.reason ?? 'priceStale')
        : market.session === 'closed'
          ? 'marketClosed'
          : 'priceStale'
    ]
  if (rule.distanceBps === null) return 'a first price'
  if (rule.distanceBps !== 0) {
    const direction = rule.triggerType === 'StopLoss' ? 'fall' : 'rise'
    return `${rule.triggerBps === 0 ? '' : 'the price to '}${direction} by ${formatBps(Math.abs(rule.distanceBps))}, to ${formatUsd(rule.triggerPriceUsd)} USD`
  }
  if (lastOutcome?.outcome === 'deferred') return DEFERRALS[lastOutcome.reason ?? 'priceStale']
  if (lastOutcome?.outcome === 'failed') {
    const next =
      lastOutcome.nextTryAt === undefined ? '' : `, tried again at ${formatLocal(Number(lastOutcome.nextTryAt))}`
    return `the next attempt: ${lastOutcome.message ?? lastOutcome.code ?? 'the last one failed'}${next}`
  }
  return 'nothing: the trigger is reached and the keeper is selling'
}

const DEFERRALS = {
  priceStale: 'a fresh price',
  priceUnsettled: 'a price from after the corporate action',
  marketClosed: 'the market to open',
  marketHalted: 'a price of the open market, where trading is halted or the price provider is late',
  tradingPaused: 'trading in the vault to resume',
  tokenRestricted: 'the issuer, who keeps the vault from selling the token',
  poolPrice: "the pool's price to come within the exit's floor, which widens with time",
}

/** The rules of a position in ladder order: what fired, and what each pending one waits for. */
export function RuleTable({ position, automation }: { position: Position; automation: Automation | undefined }) {
  if (position.exitRules.length === 0) return <p class="fine">This position has no exit rules.</p>
  const rows = position.exitRules.map((rule, index) => ({
    rule,
    index,
    pending: automation?.pendingRules.find(({ ruleIndex }) => ruleIndex === index),
  }))
  return (
    <DataTable
      label={`Exit rules of position ${position.positionId}`}
      columns={columnsOf(position, automation)}
      rows={rows}
      keyOf={({ index }) => `${index}`}
    />
  )
}

type RuleRow = { rule: Position['exitRules'][number]; index: number; pending: PendingExit | undefined }

const columnsOf = (position: Position, automation: Automation | undefined): Column<RuleRow>[] => [
  {
    head: 'Rule',
    part: 'name',
    cell: ({ rule, index }) => `${index + 1}. ${ruleName(rule.triggerType)}`,
  },
  { head: 'Trigger', part: 'lead', isNumber: true, cell: ({ rule }) => <Percent bps={rule.triggerBps} signed /> },
  {
    head: 'At price',
    isNumber: true,
    cell: ({ rule, pending }) => <Price usd={pending?.triggerPriceUsd ?? triggerPriceOf(position, rule.triggerBps)} />,
  },
  { head: 'Sells', cell: ({ rule }) => soldShare(rule.exitBps) },
  {
    head: position.status === 'Open' ? 'Waits for' : 'Result',
    part: 'wide',
    wraps: true,
    cell: row => <RuleState row={row} position={position} automation={automation} />,
  },
]

type RuleStateProps = { row: RuleRow; position: Position; automation: Automation | undefined }

function RuleState({ row: { rule, index, pending }, position, automation }: RuleStateProps) {
  if (index < position.nextRuleIndex)
    return <Badge tone={rule.triggerType === 'StopLoss' ? 'bad' : 'good'}>fired</Badge>
  if (position.status !== 'Open') return <>did not fire</>
  return <>{pending && automation ? waitOf(pending, automation) : 'being read'}</>
}

const triggerPriceOf = ({ entryPriceUsdc }: Position, triggerBps: number): string =>
  `${(Number(entryPriceUsdc) / 1e6) * (1 + triggerBps / 10_000)}`

const OUTCOMES = {
  notReached: 'No trigger is reached.',
  executed: 'The last exit was executed.',
  partlyExecuted: 'Part of the last exit was sold; the rest stays due.',
  deferred: 'A due exit is deferred.',
  failed: 'The last attempt to sell failed.',
}

/** What the keeper last saw and did. */
export function KeeperReport({ automation }: { automation: Automation }) {
  const { keeperEnabled, lastEvaluation, lastOutcome, ownerClose } = automation
  if (!keeperEnabled) return <p class="prose">This service runs no keeper; anybody may fire a due rule on chain.</p>
  return (
    <p class="prose">
      {ownerClose && 'The owner closes all positions: this one is being sold. '}
      {lastOutcome ? OUTCOMES[lastOutcome.outcome] : 'The keeper has not evaluated this position yet.'}
      {lastOutcome?.usdcOut !== undefined && (
        <>
          {' '}
          It brought <Usdc value={lastOutcome.usdcOut} />.
        </>
      )}
      {lastEvaluation && (
        <>
          {' '}
          Last evaluated at <Price usd={lastEvaluation.priceUsd} /> in block{' '}
          <span class="num">{Number(lastEvaluation.blockNumber).toLocaleString('en')}</span>.
        </>
      )}
    </p>
  )
}
