import { parseArgs } from 'node:util'
import { measureRecovery, type Recovery } from './crash-recovery.ts'
import { countFaultViolations, type FaultViolations } from './fault-violations.ts'
import { median, startLoadGenerator } from './load-generator.ts'
import { measureReads, type Reads } from './read-throughput.ts'
import { type Measurement, startTestbed, type Testbed } from './relay-throughput.ts'
import { describeMachine, table, writeSection } from './results-file.ts'

// `npm run bench [-- --runs 3]`: measures relaying and reads against a baseline relay, presigned sends and a bare
// route, on workerd and a chain with a block every 0.25 s. Prints a table and writes its section of bench/results.md.
// `npm run bench -- recovery [--runs 3]` only kills and restarts the service, `npm run bench -- fast` only relays on
// 100 ms blocks; both write nothing.
const { values, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '3' } },
  allowPositionals: true,
})
const runs = Number(values.runs)

const BLOCK_MS = 250
/** The pace of Robinhood Chain. */
const FAST_BLOCK_MS = 100
/** More clients than a lane's in-flight limit, so that the lane always has work. */
const SUSTAINED = { intents: 1_200, warmUp: 400, clients: 256 }
const CROWD = { intents: 1_000, warmUp: 400, clients: 64 }
const PACED = { intents: 400, perSecond: 100 }

type Run = Record<
  'peer' | 'oneKey' | 'fourKeys' | 'crowd' | 'rawCrowd' | 'paced' | 'rawPaced' | 'fast' | 'fastCrowd' | 'fastPeer',
  Measurement
>

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)} ${text}`)
const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
const figure = ({ perSecond, p50, p99, succeeded, wrongIds, cpu }: Measurement) =>
  `${perSecond.toFixed(0)}/s, p50 ${ms(p50)}, p99 ${ms(p99)}, ${succeeded} succeeded, ${wrongIds} wrong ids, CPU ${cpu.subject.toFixed(2)} + ${cpu.anvil.toFixed(2)} ms`

/** A chain gets slower as it grows, so everything that is compared starts on a new one. */
async function onNewChain<Result>(use: (testbed: Testbed) => Promise<Result>, blockMs?: number): Promise<Result> {
  const testbed = await startTestbed(loadGenerator, blockMs)
  try {
    return await use(testbed)
  } finally {
    await testbed.stop()
  }
}

async function recover(testbed: Testbed): Promise<Recovery> {
  const recovery = await measureRecovery(testbed, loadGenerator)
  say(`  killed and restarted: ${recovery.accepted} accepted intents mined after ${recovery.seconds.toFixed(2)} s`)
  return recovery
}

async function reported(name: string, measured: Promise<Measurement>): Promise<Measurement> {
  const result = await measured
  say(`  ${name}: ${figure(result)}`)
  return result
}

async function relayOnFastChain(): Promise<Pick<Run, 'fast' | 'fastCrowd' | 'fastPeer'>> {
  const fastPeer = await onNewChain(
    testbed => testbed.peer(measure => reported('Express peer, 100 ms blocks', measure(SUSTAINED))),
    FAST_BLOCK_MS,
  )
  const service = await onNewChain(
    ({ service }) =>
      service(1, async measure => ({
        fast: await reported('service, one key, 100 ms blocks', measure(SUSTAINED)),
        fastCrowd: await reported('service, 64 clients, 100 ms blocks', measure(CROWD)),
      })),
    FAST_BLOCK_MS,
  )
  return { fastPeer, ...service }
}

async function relay(): Promise<Run & { reads: Reads[]; recovery: Recovery }> {
  const presigned = await onNewChain(async ({ raw }) => ({
    rawCrowd: await reported('presigned, 64 clients', raw(CROWD)),
    rawPaced: await reported('presigned, 100 a second', raw(PACED)),
  }))
  const waiting = await onNewChain(({ service }) =>
    service(1, async measure => ({
      crowd: await reported('service, 64 clients', measure(CROWD)),
      paced: await reported('service, 100 a second', measure(PACED)),
    })),
  )
  const peer = await onNewChain(testbed => testbed.peer(measure => reported('Express peer', measure(SUSTAINED))))
  const relayWith = (keys: number, name: string) =>
    onNewChain(({ service }) => service(keys, measure => reported(`service, ${name}`, measure(SUSTAINED))))
  const oneKey = await relayWith(1, 'one key')
  const fourKeys = await relayWith(4, 'four keys')
  const onFastChain = await relayOnFastChain()
  return onNewChain(async testbed => {
    const reads = await measureReads(testbed, loadGenerator)
    say(`  reads: ${reads.map(({ path, perSecond }) => `${path} ${perSecond.toFixed(0)}/s`).join(', ')}`)
    return {
      ...presigned,
      ...waiting,
      peer,
      oneKey,
      fourKeys,
      ...onFastChain,
      reads,
      recovery: await recover(testbed),
    }
  })
}

type ResultRow = { what: string; figure: string; target: string; met: boolean; limit?: string }

function compareWithTargets(
  results: Awaited<ReturnType<typeof relay>>[],
  violations: Record<'service' | 'peer', FaultViolations>,
): ResultRow[] {
  const of = (pick: (run: (typeof results)[number]) => number) => median(results.map(pick))
  const rate = of(({ oneKey }) => oneKey.perSecond)
  const ofPeer = of(({ oneKey, peer }) => oneKey.perSecond / peer.perSecond)
  const wrong = Math.max(
    ...results.map(({ oneKey, crowd, fourKeys }) => oneKey.wrongIds + crowd.wrongIds + fourKeys.wrongIds),
  )
  const fourToOne = of(({ oneKey, fourKeys }) => fourKeys.perSecond / oneKey.perSecond)
  const thread = of(({ fourKeys }) => (fourKeys.perSecond * fourKeys.cpu.subject) / 1_000)
  const busy = of(({ fourKeys }) => fourKeys.busy)
  const crowdOverhead = of(({ crowd, rawCrowd }) => crowd.p50 - rawCrowd.p50)
  const pacedOverhead = of(({ paced, rawPaced }) => paced.p50 - rawPaced.p50)
  const p99 = of(({ crowd }) => crowd.p99)
  const cpu = of(({ oneKey }) => oneKey.cpu.subject)
  const readsOf = (path: string) => ({
    ofBare: of(({ reads }) => reads.find(read => read.path === path)?.ofBare ?? Number.NaN),
    perSecond: of(({ reads }) => reads.find(read => read.path === path)?.perSecond ?? Number.NaN),
  })
  const recovered = of(({ recovery }) => recovery.seconds)
  const peerRate = of(({ peer }) => peer.perSecond)
  const fastRate = of(({ fast }) => fast.perSecond)
  const fastOfPeer = of(({ fast, fastPeer }) => fast.perSecond / fastPeer.perSecond)
  const fastWrong = Math.max(...results.map(({ fast, fastCrowd }) => fast.wrongIds + fastCrowd.wrongIds))
  const fastP50 = of(({ fastCrowd }) => fastCrowd.p50)
  const peerLost = of(({ peer }) => SUSTAINED.intents - peer.succeeded)
  const usesThread = `workerd uses ${(100 * thread).toFixed(0)} % of its one thread; all processes use ${busy.toFixed(2)} cores`
  return [
    {
      what: `intents/s, one key, ${SUSTAINED.clients} clients`,
      figure: `${rate.toFixed(0)}/s, ${wrong} wrong ids`,
      target: '450/s, 0 wrong',
      met: rate >= 450 && wrong === 0,
      limit: `${cpu.toFixed(2)} ms of CPU per intent on one thread`,
    },
    {
      what: 'the same, relative to the Express relay',
      figure: `${ofPeer.toFixed(1)} times (${peerRate.toFixed(0)}/s; ${peerLost} of ${SUSTAINED.intents} of its intents failed)`,
      target: '3 times',
      met: ofPeer >= 3,
    },
    {
      what: 'four keys, relative to one',
      figure: `${fourToOne.toFixed(2)} times; ${usesThread}`,
      target: '1.8 times, or the CPU is the limit',
      met: fourToOne >= 1.8 || thread >= 0.85 || busy >= 1.7,
    },
    {
      what: 'overhead at p50 over a presigned send, 100 a second',
      figure: ms(pacedOverhead),
      target: '25 ms',
      met: pacedOverhead <= 25,
      limit:
        'a read, a simulation, two signatures and a commit precede the send, and an intent in the last milliseconds of a block waits for the next one',
    },
    {
      what: 'the same in a closed loop of 64 clients',
      figure: ms(crowdOverhead),
      target: '25 ms',
      met: crowdOverhead <= 25,
      limit: '64 intents start at the same block and share one thread',
    },
    {
      what: 'p99 of the 201 at 64 clients',
      figure: `${ms(p99)}, ${(p99 / BLOCK_MS).toFixed(2)} block times`,
      target: '2.2 block times',
      met: p99 <= 2.2 * BLOCK_MS,
    },
    {
      what: 'intents/s, one key, with a block every 100 ms, relative to the Express relay',
      figure: `${fastOfPeer.toFixed(1)} times (${fastRate.toFixed(0)}/s), ${fastWrong} wrong ids`,
      target: '3.3 times, 0 wrong',
      met: fastOfPeer >= 3.3 && fastWrong === 0,
    },
    {
      what: 'p50 from the post to the 201 at 64 clients, with a block every 100 ms',
      figure: `${ms(fastP50)}, ${(fastP50 / FAST_BLOCK_MS).toFixed(1)} block times`,
      target: '4 block times',
      met: fastP50 <= 4 * FAST_BLOCK_MS,
    },
    {
      what: 'wrong responses with 5 % of requests and 5 % of responses dropped',
      figure: `${violations.service.wrong} of ${violations.service.intents} intents (peer: ${violations.peer.wrong} of ${violations.peer.intents}: ${rulesOf(violations.peer)})`,
      target: '0',
      met: violations.service.wrong === 0,
    },
    {
      what: 'CPU of workerd per intent',
      figure: `${cpu.toFixed(2)} ms`,
      target: '2 ms',
      met: cpu <= 2,
      limit: '`npm run bench:costs -- --profile relay.cpuprofile` shows where it goes',
    },
    ...['/agents/1', '/prices'].map((path): ResultRow => {
      const { perSecond, ofBare } = readsOf(path)
      return {
        what: `GET ${path} of a cached block, relative to a bare Hono route in the same isolate`,
        figure: `${ofBare.toFixed(2)} times, ${perSecond.toFixed(0)}/s (bare ${readsOf('/bare').perSecond.toFixed(0)}/s)`,
        target: '0.8 times',
        met: ofBare >= 0.8,
      }
    }),
    {
      what: 'restart after `kill -9` until all accepted intents are mined',
      figure: `${recovered.toFixed(2)} s from the restart (${results.map(({ recovery }) => recovery.accepted).join(', ')} intents)`,
      target: '1 s',
      met: recovered <= 1,
    },
  ]
}

const rulesOf = ({ rules }: FaultViolations) =>
  Object.entries(rules)
    .map(([rule, count]) => `${count} ${rule}`)
    .join(', ') || 'none'

const machine = describeMachine()
say(machine)
const loadGenerator = startLoadGenerator()
const results: Awaited<ReturnType<typeof relay>>[] = []
try {
  for (let run = 1; run <= runs; run++) {
    say(`run ${run} of ${runs}`)
    if (positionals.includes('recovery')) await onNewChain(recover)
    else if (positionals.includes('fast')) await relayOnFastChain()
    else results.push(await relay())
  }
} finally {
  loadGenerator.stop()
}
if (results.length === 0) process.exit()
say('violations with a failing node')
const rows = compareWithTargets(results, await countFaultViolations())
const section = [
  '## Relay and reads',
  `\`npm run bench\`: ${runs} runs of at least ${SUSTAINED.intents} intents on new chains with a block every 0.25 s; medians. Every intent opens a position; the ids in every 201 are compared with the chain. \`test/integration/rpc-calls.test.ts\` fixes the round trips per operation.`,
  `Machine: ${machine}.`,
  table(
    ['', 'measured', 'target', ''],
    rows.map(({ what, figure, target, met, limit }) => [
      what,
      figure,
      target,
      met ? 'met' : `missed${limit ? `: ${limit}` : ''}`,
    ]),
  ),
].join('\n\n')
console.log(`\n${section}`)
writeSection('relay', section)
