import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { formatBps } from '../../format/amounts.ts'
import { formatUtc } from '../../format/time.ts'
import { DAY_SECONDS } from '../../parts/chart-range.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Facts, Panel } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { Duration, Time } from '../../parts/times.tsx'

type History = Schema['HealthHistory']
/** A day of the strip: undefined counts mean that nothing was checked. */
type Day = { start: number; row: History['days'][number] | undefined }

const DAYS = 90
const POLL_MS = 300_000
const [WIDTH, HEIGHT] = [10, 36]

/** How often trading was possible on each of the last 90 days, and which versions ran. */
export function LastDays() {
  const history = useRead('getHealthHistory', {}, { pollMs: POLL_MS })
  return (
    <Panel title="Last 90 days">
      <WhenReady resource={history} what="the last 90 days">
        {data =>
          data.days.length === 0 ? (
            <Empty title="Nothing was recorded yet.">
              The service checks every {data.checkSeconds / 60} minutes whether trading is possible.
            </Empty>
          ) : (
            <>
              <Strip history={data} />
              {data.incidents.length > 0 && <Incidents incidents={data.incidents} />}
            </>
          )
        }
      </WhenReady>
    </Panel>
  )
}

function Strip({ history: { days, checkSeconds } }: { history: History }) {
  const today = Math.floor(Date.now() / 1000 / DAY_SECONDS) * DAY_SECONDS
  const shown = Array.from({ length: DAYS }, (_, index): Day => {
    const start = today - (DAYS - 1 - index) * DAY_SECONDS
    return { start, row: days.find(({ day }) => Number(day) === start) }
  })
  const checks = days.reduce((sum, day) => sum + day.checks, 0)
  const ready = days.reduce((sum, day) => sum + day.ready, 0)
  const firsts = days.flatMap(({ day, versions }) => versions.map(version => ({ day: Number(day), version })))
  const versions = firsts.filter(({ version }, index) => version !== firsts[index - 1]?.version)
  const share = formatBps((ready * 10_000) / checks)
  return (
    <>
      <svg
        class="strip"
        viewBox={`0 0 ${DAYS * WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Trading was possible at ${share} of the checks of ${days.length} days.`}
      >
        {shown.map(({ start, row }, index) => (
          <rect key={start} class={stateOf(row)} x={index * WIDTH + 1} width={WIDTH - 2} height={HEIGHT} rx="2">
            <title>{textOf({ start, row })}</title>
          </rect>
        ))}
      </svg>
      <Facts
        items={[
          ['Trading was possible', `${share} of ${checks.toLocaleString('en')} checks`],
          ['Days with checks', `${days.length} of ${DAYS}`],
          ['Checked', `every ${checkSeconds / 60} minutes; what was not checked is grey`],
          [
            'Versions',
            versions
              .map(({ day, version }) => `${version} since ${dateOf(day)}`)
              .slice(-5)
              .reverse()
              .join(', '),
          ],
        ]}
      />
    </>
  )
}

type Incident = History['incidents'][number]

const INCIDENT_COLUMNS: Column<Incident>[] = [
  { head: 'Trading stopped', part: 'name', cell: ({ startedAt }) => <Time value={startedAt} /> },
  {
    head: 'Lasted',
    part: 'lead',
    isNumber: true,
    cell: ({ startedAt, endedAt }) =>
      endedAt === null ? 'still open' : <Duration seconds={Number(endedAt) - Number(startedAt)} />,
  },
  { head: 'Cause', part: 'text', wraps: true, cell: ({ problems }) => problems.join('; ') },
  { head: 'Version', cell: ({ version }) => version },
]

/** When trading was not possible, the newest first. */
function Incidents({ incidents }: { incidents: Incident[] }) {
  return (
    <>
      <DataTable
        label="Incidents"
        columns={INCIDENT_COLUMNS}
        rows={[...incidents].reverse()}
        keyOf={({ startedAt }) => startedAt}
      />
      <p class="fine">What an operator does about each cause is in docs/operations.md, “When an alert fires”.</p>
    </>
  )
}

const dateOf = (seconds: number) => formatUtc(seconds).slice(0, 10)

const stateOf = (row: Day['row']) =>
  row === undefined ? 'unknown' : row.ready === row.checks ? 'good' : row.ready === 0 ? 'bad' : 'mixed'

const textOf = ({ start, row }: Day) =>
  row === undefined
    ? `${dateOf(start)}: not checked`
    : `${dateOf(start)}: possible at ${row.ready} of ${row.checks} checks; version ${row.versions.join(', ')}`
