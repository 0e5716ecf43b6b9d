import type { ComponentChildren } from 'preact'
import { isOutage, useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Count } from '../parts/figures.tsx'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { Address, Badge } from '../parts/text.tsx'
import { Duration, Time } from '../parts/times.tsx'
import { LastDays } from './status/last-days.tsx'
import { type Report, reportIn } from './status/report-in-details.ts'
import { MarketHours } from './vault/market-hours.tsx'

const POLL_MS = 5_000

/** The facts of readiness: can agents trade, and what needs attention. */
export function StatusPage() {
  useLive({})
  const resource = useRead('getReadiness', {}, { pollMs: POLL_MS })
  const { data, error, readAt, reload } = resource
  const isNotReady = error?.code === 'NOT_READY'
  // A service that cannot trade responds with an error that has the same facts in its details, if it could read them.
  const facts = isNotReady ? reportIn(error.details) : data
  const isReady = error === undefined && data !== undefined
  return (
    <>
      <PageTitle
        title="Status"
        kicker="What the service needs to trade, checked now"
        aside={
          facts && (
            <span class="fine">
              checked <Time value={Math.floor((isNotReady ? Date.now() : (readAt ?? 0)) / 1000)} withSeconds />
            </span>
          )
        }
      />
      {facts === undefined ? (
        error ? (
          isNotReady ? (
            <>
              <div class="verdict bad" role="status">
                <strong>Trading is not possible now.</strong>
                <p>{error.message}</p>
              </div>
              <LastDays />
            </>
          ) : (
            <Failure error={error} what="the status" retry={reload} />
          )
        ) : (
          <Loading what="the status" lines={8} />
        )
      ) : (
        <>
          <div class={`verdict ${isReady ? (facts.problems.length === 0 ? 'good' : 'warn') : 'bad'}`} role="status">
            <strong>
              {isReady
                ? facts.problems.length === 0
                  ? 'Trading is possible.'
                  : 'Trading is possible; some parts need attention.'
                : isNotReady
                  ? 'Trading is not possible now.'
                  : 'The status could not be read; this is the last one.'}
            </strong>
            {!isReady && error && !isOutage(error.code) && <p>{error.message}</p>}
            {facts.problems.length > 0 && (
              <ul>
                {facts.problems.map(problem => (
                  <li key={problem}>{problem}</li>
                ))}
              </ul>
            )}
          </div>
          <LastDays />
          <Panel title="Parts" flush>
            <PartTable facts={facts} />
          </Panel>
          {facts.findings.length > 0 && (
            <Panel title="How the deployment is set up" flush>
              <DataTable
                label="Findings"
                columns={FINDING_COLUMNS}
                rows={facts.findings}
                keyOf={({ check, subject, sentence }) => `${check} ${subject} ${sentence}`}
              />
            </Panel>
          )}
          <Panel title="Accounts that send transactions" flush>
            <LaneTable facts={facts} />
          </Panel>
        </>
      )}
    </>
  )
}

type Part = { name: string; isFine: boolean; text: ComponentChildren }

const MAX_LAG_SECONDS = 60

function PartTable({ facts }: { facts: Report }) {
  const { rpc, contracts, keeper, history, oracle, facilitator, events, vaults, paused } = facts
  const number = (digits: string | number) => <span class="num">{Number(digits).toLocaleString('en')}</span>
  const parts: Part[] = [
    {
      name: 'Chain',
      isFine: rpc.lagSeconds < MAX_LAG_SECONDS,
      text: (
        <>
          block {number(rpc.blockNumber)}, <Duration seconds={Math.max(0, rpc.lagSeconds)} /> behind the clock
        </>
      ),
    },
    {
      name: 'Contracts',
      isFine: contracts.missing.length === 0,
      text: contracts.missing.length === 0 ? 'all have code' : `without code: ${contracts.missing.join(', ')}`,
    },
    {
      name: 'Keeper',
      isFine: keeper.configured,
      text: keeper.configured ? (
        <>
          watches <Count value={Number(keeper.openPositions)} one="position" />,{' '}
          <Count value={keeper.pendingExits} one="exit" /> in flight
          {keeper.lastEvaluation && (
            <>
              , last evaluated block {number(keeper.lastEvaluation.blockNumber)} at{' '}
              <Time value={keeper.lastEvaluation.at} withSeconds />
            </>
          )}
        </>
      ) : (
        'not configured: exits are fired by others'
      ),
    },
    {
      name: 'Index',
      isFine: history.lagSeconds !== null && history.lagSeconds < MAX_LAG_SECONDS && !history.pendingMigrations?.length,
      text: history.pendingMigrations?.length ? (
        `migrations pending: ${history.pendingMigrations.join(', ')}`
      ) : history.cursor === null ? (
        'not started'
      ) : (
        <>
          at block {number(history.cursor)}, <Count value={history.lagBlocks ?? 0} one="block" /> behind
        </>
      ),
    },
    {
      name: 'Prices',
      isFine: oracle.stale.length === 0,
      text:
        oracle.stale.length > 0 ? (
          `stale: ${oracle.stale.join(', ')}`
        ) : oracle.market === 'open' ? (
          'fresh where the market is open'
        ) : (
          <>
            market <MarketHours market={{ session: 'closed', nextOpen: oracle.nextOpen }} />
          </>
        ),
    },
    {
      name: 'Event streams',
      isFine: !events.failing,
      text: events.failing ? 'the last attempt to publish failed' : <>{number(events.streams)} open</>,
    },
    {
      name: 'Vaults',
      isFine: paused.vaults.length === 0 && vaults.withoutIdle.length === 0,
      text:
        paused.vaults.length > 0
          ? `paused: ${paused.vaults.join(', ')}`
          : vaults.withoutIdle.length > 0
            ? `without idle USDC: ${vaults.withoutIdle.join(', ')}`
            : 'open, with idle USDC',
    },
    {
      name: 'Registration',
      isFine: !paused.registry && facilitator.kind !== 'unusable' && facilitator.reachable,
      text: paused.registry ? 'paused' : FEES[facilitator.kind],
    },
  ]
  return <DataTable label="Parts of the service" columns={PART_COLUMNS} rows={parts} keyOf={({ name }) => name} />
}

type Finding = Report['findings'][number]

const FINDING_COLUMNS: Column<Finding>[] = [
  { head: 'Check', part: 'name', cell: ({ check }) => check },
  {
    head: 'State',
    part: 'lead',
    cell: ({ verdict }) => <Badge tone={verdict === 'wrong' ? 'bad' : 'warn'}>{verdict}</Badge>,
  },
  { head: 'Finding', part: 'text', wraps: true, cell: ({ sentence }) => sentence },
  { head: 'What fixes it', part: 'text', wraps: true, cell: ({ fix }) => fix && <code>{fix}</code> },
]

const PART_COLUMNS: Column<Part>[] = [
  { head: 'Part', part: 'name', cell: ({ name }) => name },
  {
    head: 'State',
    part: 'lead',
    cell: ({ isFine }) => <Badge tone={isFine ? 'good' : 'warn'}>{isFine ? 'fine' : 'look here'}</Badge>,
  },
  { head: 'Facts', part: 'text', wraps: true, cell: ({ text }) => text },
]

const FEES = {
  none: 'open, without a fee',
  own: 'open; this service settles the fee',
  hosted: 'open; a hosted facilitator settles the fee',
  unusable: 'fees are misconfigured',
}

function LaneTable({ facts }: { facts: Report }) {
  const roles = [
    ['Relays intents', facts.executor.lanes],
    ['Registers agents', facts.relayer.lanes],
    ['Posts prices', facts.updater.lanes],
    ['Fires exits', facts.keeper.lanes],
    ['Posts weekly results', facts.reporter.lanes],
  ] as const
  const lanes = roles.flatMap(([role, own]) => own.map(lane => ({ role, lane })))
  return (
    <DataTable
      label="Accounts"
      columns={LANE_COLUMNS}
      rows={lanes}
      keyOf={({ role, lane }) => `${role} ${lane.address}`}
    />
  )
}

type RoleLane = { role: string; lane: Report['executor']['lanes'][number] }

const LANE_COLUMNS: Column<RoleLane>[] = [
  { head: 'Role', part: 'name', cell: ({ role }) => role },
  { head: 'Account', cell: ({ lane }) => <Address value={lane.address} /> },
  { head: 'State', part: 'lead', cell: ({ lane }) => <LaneState lane={lane} /> },
  { head: 'Pending', isNumber: true, cell: ({ lane }) => lane.pending },
  { head: 'Oldest', isNumber: true, cell: ({ lane }) => <Duration seconds={lane.oldestPendingSeconds} /> },
  { head: 'Next nonce', isNumber: true, cell: ({ lane }) => lane.nextNonce ?? '–' },
]

function LaneState({ lane }: Pick<RoleLane, 'lane'>) {
  if (lane.paused) return <Badge tone="bad">paused: {lane.pausedFor}</Badge>
  return lane.hasRole ? <Badge tone="good">ready</Badge> : <Badge tone="bad">lacks its role</Badge>
}
