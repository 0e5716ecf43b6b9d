import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { prepareService } from '../test/faults/service.ts'
import { runOnGeth } from '../test/providers/geth-runs.ts'
import { updateOperationsPage } from '../test/providers/nodes-table.ts'
import { type ProviderName, providerNames } from '../test/providers/profiles.ts'
import { type ProviderResult, readResults, resultOf, writeResults } from '../test/providers/results.ts'
import { type ProviderRig, startProviderRig } from '../test/providers/run.ts'

// `npm run providers -- [--profile lagging-pool] [--seed 1] [--rounds 5] [--traffic]`: the service behind a proxy that
// behaves like a public provider, with honest agents; everything it told is compared with the chain. Exits 1 on a false
// answer, a lost or a doubled event, or if fewer than 99 % of the operations succeed at once. `--traffic` also measures
// what the service asks of the provider while it is idle, with an open position and with a stream, and writes that into
// test/providers/results.json and the table of docs/nodes.md. `--node geth --geth <path> [--nginx
// <path>] [--run frozen]` takes two go-ethereum nodes instead, on which blocks are rewound and replaced, and which lag
// and freeze.
const { values } = parseArgs({
  options: {
    profile: { type: 'string', multiple: true, default: providerNames },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
    traffic: { type: 'boolean', default: false },
    node: { type: 'string' },
    geth: { type: 'string', default: process.env.GETH ?? 'geth' },
    nginx: { type: 'string' },
    run: { type: 'string', multiple: true, default: [] },
    verbose: { type: 'boolean', default: false },
  },
})
const names = values.profile as ProviderName[]
const unknown = names.filter(name => !providerNames.includes(name))
if (unknown.length > 0)
  throw new Error(`Unknown profile ${unknown.join(', ')}. Choose from: ${providerNames.join(', ')}`)

const FEWEST_FIRST_TRIES = 0.99
const AGENTS = 4
/** With more, a small machine makes blocks more slowly than Arbitrum. */
const PROFILES_AT_ONCE = 3
const WARM_UP_MS = 60_000
const SETTLE_MS = 30_000
const CRON_MS = 60_000
/** In that time an idle service audits its index once. */
const IDLE_MINUTES = 5
/** Minutes of the hour: in the first one the cron trigger checks readiness, in the other it does not. */
const [CHECKING_MINUTE, ORDINARY_MINUTE] = [0, 1]
/** The index reads settled blocks, and audits, once in that time. */
const STREAM_MS = 60_000

// What was started ends with this process: the nodes of a chain have handlers of `exit`.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const service = await prepareService()
const seed = Number(values.seed)
let isGood = true

/** What the service asks of the provider in some minutes, with the cron trigger in each. */
const inMinutes = (rig: ProviderRig, minutes: number) =>
  rig.during(async () => {
    for (let minute = 0; minute < minutes; minute++) {
      await rig.cron(ORDINARY_MINUTE)
      await sleep(CRON_MS)
    }
  })

async function measureTraffic(rig: ProviderRig) {
  await fetch(`${rig.url}/health/ready`)
  await rig.cron(ORDINARY_MINUTE) // it posts prices
  await sleep(WARM_UP_MS)
  const ordinaryCron = await rig.during(() => rig.cron(ORDINARY_MINUTE))
  const checkingCron = await rig.during(() => rig.cron(CHECKING_MINUTE))
  const idle = await inMinutes(rig, IDLE_MINUTES)
  const held = await rig.hold()
  if (held.some(({ status }) => status !== 200 && status !== 201))
    throw new Error(`The agent could not open a position: ${JSON.stringify(held)}`)
  await sleep(SETTLE_MS)
  const holding = await inMinutes(rig, 1)
  const pace = (idle.blocks / idle.seconds).toFixed(1)
  console.log(
    `  ${rig.name}: ${pace} blocks a second, ${JSON.stringify({ ordinaryCron: ordinaryCron.calls, checkingCron: checkingCron.calls, idle: idle.calls, holding: holding.calls })}`,
  )
  return { ordinaryCron, checkingCron, idle, holding }
}

async function measureStream(rig: ProviderRig) {
  const close = await rig.stream()
  await sleep(2_000)
  const streaming = await rig.during(() => sleep(STREAM_MS))
  close()
  return streaming
}

async function trade(name: ProviderName, rig: ProviderRig) {
  const report = await rig.trade({ seed, rounds: Number(values.rounds), agents: AGENTS })
  const { attempts, succeeded, intents, missing, doubled, falsehoods, refusals, traffic } = report
  console.log(
    `${name}: ${succeeded} of ${attempts} operations at once, ${missing.length} events missing, ${doubled.length} doubled, ${falsehoods.length} false answers, ${intents} intents in ${traffic.seconds.toFixed(0)} s`,
  )
  for (const line of [...falsehoods, ...missing, ...doubled].slice(0, 20)) console.log(`  ${line}`)
  console.log(`  ${JSON.stringify({ refusals, limits: Object.fromEntries(rig.limits), calls: traffic.calls })}`)
  if (values.verbose) console.log(rig.logs())
  if (missing.length + doubled.length + falsehoods.length > 0 || succeeded < FEWEST_FIRST_TRIES * attempts)
    isGood = false
  return report
}

async function withRig<Value>(name: ProviderName, work: (rig: ProviderRig) => Promise<Value>): Promise<Value> {
  const rig = await startProviderRig(service.start, { name, seed })
  return work(rig).finally(() => rig.stop())
}

/** Measures one profile. The minutes of several profiles pass at the same time; trades take turns. */
let turn: Promise<unknown> = Promise.resolve()
const measure = (name: ProviderName): Promise<ProviderResult> =>
  withRig(name, async rig => {
    const quiet = await measureTraffic(rig)
    const traded = turn.then(async () => {
      const streaming = await measureStream(rig)
      return resultOf(name, { ...quiet, streaming }, await trade(name, rig))
    })
    turn = traded.catch(() => {})
    return traded
  })

try {
  if (values.node === 'geth') {
    const { geth, nginx, run: only } = values
    isGood = await runOnGeth(service.start, { geth, nginx, only, seed, rounds: Number(values.rounds) })
  } else if (values.traffic) {
    const results: ProviderResult[] = []
    for (let start = 0; start < names.length; start += PROFILES_AT_ONCE)
      results.push(...(await Promise.all(names.slice(start, start + PROFILES_AT_ONCE).map(measure))))
    console.log(JSON.stringify(results, undefined, 2))
    writeResults(results)
    updateOperationsPage(readResults())
  } else for (const name of names) await withRig(name, rig => trade(name, rig))
} finally {
  service.remove()
}
process.exitCode = isGood ? 0 : 1
