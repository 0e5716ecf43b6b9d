import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { generateMarket } from '../rehearsal/generate-market.ts'
import { describeMachine, table, writeSection } from './results-file.ts'

// `npm run bench:rehearsal -- --before <commit>`: bars per second of a rehearsal, of the working tree and of a commit
// before, in turn, on tapes of single prices. A bar's cost is the difference between a longer and a shorter tape, so
// what starts and stops once does not count. It compares the trades of both, and writes bench/results.md. Without
// `--before`, it measures the working tree alone.

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    bars: { type: 'string', default: '100,1000,10000,19656' },
    rounds: { type: 'string', default: '3' },
  },
})

const SOURCE = '--conditions=@agent-trading-service/source'
/** Bars of the tapes that both builds play, with and without an agent. */
const COMPARED = { none: [40, 1_240], momentum: [40, 640] } as const
const SAMPLE_MS = 250

const root = join(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-bench-'))
type Build = { name: string; root: string }
/** `cpuSeconds` are those of all processes, which another load of the machine does not change. */
type Played = { seconds: number; cpuSeconds: number; trades: object[]; peakMib: number }

/** Writes a tape of five-minute bars of twelve tokens, and returns its path. */
function writeTape(bars: number): string {
  const days = Math.ceil(bars / 78 / 5) * 7 + 7
  const market = { kind: 'trend', vol: 45, drift: 8, correlation: 0.4, seed: 7, allHours: false } as const
  const { steps } = generateMarket({ ...market, days })
  const rows = steps
    .slice(0, bars)
    .flatMap(({ time, prices }) => [...prices].map(([symbol, price]) => `${time},${symbol},${Number(price) / 1e8}`))
  const file = join(folder, `${bars}.csv`)
  writeFileSync(file, `time,symbol,price\n${rows.join('\n')}\n`)
  return file
}

/** Plays a tape in a build, to an agent that looks at every bar or to nobody. */
async function play(build: Build, bars: number, agent: keyof typeof COMPARED): Promise<Played> {
  const json = join(folder, 'report.json')
  const momentum = [SOURCE, join(root, 'examples/momentum.ts')]
  const program = agent === 'none' ? [] : ['--', process.execPath, ...momentum]
  const startedAt = performance.now()
  const child = spawn(
    process.execPath,
    [SOURCE, join(build.root, 'scripts/rehearse.ts'), '--tape', writeTape(bars), '--json', json, ...program],
    { cwd: build.root, stdio: ['ignore', 'ignore', 'ignore'], env: { ...process.env, LOOK_EVERY_SECONDS: '300' } },
  )
  let peakMib = 0
  const cpuByPid = new Map<number, number>()
  const sampler = setInterval(() => {
    const own = descendantsOf(child.pid ?? 0)
    peakMib = Math.max(
      peakMib,
      own.reduce((sum, { mib }) => sum + mib, 0),
    )
    for (const { pid, cpuSeconds } of own) cpuByPid.set(pid, cpuSeconds)
  }, SAMPLE_MS)
  const code = await new Promise(resolve => child.once('exit', resolve))
  clearInterval(sampler)
  if (code !== 0) throw new Error(`${build.name} did not play ${bars} bars: exit code ${code}.`)
  const { agents } = JSON.parse(readFileSync(json, 'utf8'))
  return {
    seconds: (performance.now() - startedAt) / 1000,
    cpuSeconds: [...cpuByPid.values()].reduce((sum, each) => sum + each, 0),
    trades: agents[0]?.trades ?? [],
    peakMib,
  }
}

type Process = { pid: number; parent: number; mib: number; cpuSeconds: number }

/** Returns a process and all that it has started. */
function descendantsOf(pid: number): Process[] {
  const processes = readdirSync('/proc').flatMap((name): Process[] => {
    if (!/^\d+$/.test(name)) return []
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')
      const ticks = Number(fields[11]) + Number(fields[12])
      const pages = Number(readFileSync(`/proc/${name}/statm`, 'utf8').split(' ')[1])
      return [{ pid: Number(name), parent: Number(fields[1]), mib: pages / 256, cpuSeconds: ticks / 100 }]
    } catch {
      return [] // it has ended
    }
  })
  const below = (id: number): Process[] =>
    processes.filter(({ parent }) => parent === id).flatMap(each => [each, ...below(each.pid)])
  return [...processes.filter(each => each.pid === pid), ...below(pid)]
}

type Cost = { wallMs: number; cpuMs: number }
const NEVER: Cost = { wallMs: Number.POSITIVE_INFINITY, cpuMs: Number.POSITIVE_INFINITY }

/** Returns what a bar costs in each build, the least of several rounds, and whether trades are equal. */
async function compare(builds: readonly Build[], agent: keyof typeof COMPARED) {
  const [short, long] = COMPARED[agent]
  const fewest = builds.map(() => ({ few: { ...NEVER }, many: { ...NEVER } }))
  const trades = new Set<string>()
  for (let round = 0; round < Number(values.rounds); round++)
    for (const [index, build] of builds.entries())
      for (const [size, bars] of [
        ['few', short],
        ['many', long],
      ] as const) {
        const { seconds, cpuSeconds, ...played } = await play(build, bars, agent)
        if (bars === long) trades.add(JSON.stringify(played.trades))
        const cost = fewest[index]?.[size] ?? { ...NEVER }
        cost.wallMs = Math.min(cost.wallMs, seconds * 1_000)
        cost.cpuMs = Math.min(cost.cpuMs, cpuSeconds * 1_000)
      }
  const least = fewest.map(
    ({ few, many }): Cost => ({
      wallMs: (many.wallMs - few.wallMs) / (long - short),
      cpuMs: (many.cpuMs - few.cpuMs) / (long - short),
    }),
  )
  const count = JSON.parse([...trades][0] ?? '[]').length
  return { least, areEqual: trades.size === 1, count }
}

const machine = describeMachine()
const own: Build = { name: 'this', root }
const builds = [own]
if (values.before !== undefined) {
  const before = join(folder, 'before')
  execFileSync('git', ['worktree', 'add', '--detach', before, values.before], { cwd: root })
  for (const modules of ['node_modules', 'packages/cli/node_modules', 'packages/client/node_modules'])
    symlinkSync(join(root, modules), join(before, modules))
  execFileSync(process.execPath, ['scripts/generate-client.ts'], { cwd: before })
  builds.unshift({ name: 'before', root: before })
}
try {
  const compared = []
  for (const agent of ['none', 'momentum'] as const) {
    const { least, areEqual, count } = await compare(builds, agent)
    const [first, second] = least
    const ratio = (name: keyof Cost) => (first && second ? `${(first[name] / second[name]).toFixed(1)}×` : '–')
    const perSecond = least.map(({ wallMs, cpuMs }) => `${(1_000 / wallMs).toFixed(0)} (CPU ${cpuMs.toFixed(2)} ms)`)
    const same = agent === 'none' ? '–' : areEqual ? `the same ${count}` : 'DIFFERENT'
    compared.push([
      agent === 'none' ? 'nobody' : 'momentum, at every bar',
      ...perSecond,
      ratio('wallMs'),
      ratio('cpuMs'),
      same,
    ])
    console.log(compared.at(-1)?.join(' | '))
  }
  const sizes = []
  const start = await play(own, 2, 'none')
  for (const bars of values.bars.split(',').map(Number)) {
    const { seconds, cpuSeconds, peakMib } = await play(own, bars, 'none')
    const cpuMs = ((cpuSeconds - start.cpuSeconds) / bars) * 1_000
    sizes.push([`${bars.toLocaleString('en')}`, seconds.toFixed(1), cpuMs.toFixed(2), peakMib.toFixed(0)])
    console.log(sizes.at(-1)?.join(' | '))
  }
  const heads = builds.map(({ name }) => (name === 'this' ? 'bars a second' : 'bars a second before'))
  writeSection(
    'rehearsal',
    `## Rehearsals

\`npm run bench:rehearsal -- --before <commit>\`: twelve tokens in bars of five minutes, ${values.rounds === '1' ? 'played once' : `the best of ${values.rounds} rounds`}, in turn.

Machine: ${machine}.

${table(['played to', ...heads, 'ratio', 'ratio of CPU', 'trades'], compared)}

Without an agent; a year has 19,656 bars. Memory is that of all processes, at its highest.

${table(['bars', 'seconds', 'CPU ms a bar', 'MiB'], sizes)}`,
  )
} finally {
  if (builds.length > 1) execFileSync('git', ['worktree', 'remove', '--force', join(folder, 'before')], { cwd: root })
  rmSync(folder, { recursive: true, force: true })
}
