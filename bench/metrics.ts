import { Hono } from 'hono'
import { count, observe, takeDeltas } from '../src/metrics/recorder.ts'
import { describeMachine, table, writeSection } from './results-file.ts'

// `npm run bench:metrics`: measures the cost of counting a request, alone and relative to a route that only returns
// JSON.

const ROUNDS = 7
const REQUESTS = 20_000
const OPERATIONS = 60

const route = new Hono().get('/bare', c => c.json({ hello: 'world' }))
const serve = async (_: number) => {
  await route.request('/bare')
}
const record = (index: number) => {
  const operation = `operation${index % OPERATIONS}`
  observe('ats_request_duration_seconds', { operation, surface: 'http' }, 0.012)
  count('ats_requests', { operation, surface: 'http', status: '2xx' })
}
const serveAndRecord = async (index: number) => {
  await serve(index)
  record(index)
}

const machine = describeMachine()
const [alone, bare, counted] = [
  await measure(async index => record(index)),
  await measure(serve),
  await measure(serveAndRecord),
]
const startedAt = performance.now()
const series = takeDeltas().length
const takenMs = performance.now() - startedAt
writeSection(
  'metrics',
  `## Metrics

\`npm run bench:metrics\`: medians of ${ROUNDS} rounds of ${REQUESTS} requests to ${OPERATIONS} operations, in Node. A request is recorded
in a histogram and a counter.

Machine: ${machine}.

${table(
  ['', 'measured', 'target', ''],
  [
    ['recording a request', `${alone.toFixed(2)} µs`, '50 µs', alone < 50 ? 'met' : 'missed'],
    [
      'a bare Hono route with recording, relative to the same route without',
      `${(counted / bare).toFixed(2)} times (${counted.toFixed(1)} and ${bare.toFixed(1)} µs)`,
      '',
      '',
    ],
    [`collecting the batch of ${series} series`, `${takenMs.toFixed(2)} ms`, '', ''],
  ],
)}`,
)
console.log('written to bench/results.md')

/** Returns the median time of a request in microseconds. */
async function measure(handle: (index: number) => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    for (let index = 0; index < REQUESTS; index++) await handle(index)
    times.push(((performance.now() - start) / REQUESTS) * 1_000)
  }
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN
}
