import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { bundleOnce, startWorkerd } from '../bench/workerd.ts'
import { unlimitedGas, unlimitedRequests, workerVars } from '../devnet/worker-vars.ts'
import packageJson from '../package.json' with { type: 'json' }
import type { MarketKind, RehearseOptions, TapeFile } from '../packages/cli/src/commands/rehearse.ts'
import { Failure } from '../packages/cli/src/failure.ts'
import { type AgentUnderTest, type Program, recordOf, registerAgent, runProgram } from './agent-under-test.ts'
import { generateMarket } from './generate-market.ts'
import { startMirror } from './mirror-market.ts'
import { type EmbeddedMarket, startMarket } from './play-market.ts'
import { type AgentRecord, buildReport, type PlayedMarket, type Report } from './report.ts'
import { type Condition, judge } from './requirement.ts'
import { TOKEN_DECIMALS } from './seed-venue.ts'
import { showProgress } from './show-progress.ts'
import { openStage, type Stage } from './take-turns.ts'
import { hashOf, parseTape, type Tape } from './tape.ts'

const DEFAULTS = { kind: 'gbm', vol: 45, drift: 8, correlation: 0.4 } as const

type Result = { report: Report; market: PlayedMarket }
/** A tape, where it comes from, and the seed of a generated one. */
type NamedTape = { tape: Tape; market: string; seed: number | null }
type PlayOptions = Pick<RehearseOptions, 'chainId' | 'hours' | 'speed' | 'mirror'>
type JudgeAgent = Parameters<typeof buildReport>[3]

/** Plays the market of the options to programs on the embedded chain, and reports how they did. */
export async function runRehearsal(
  programs: readonly Program[],
  options: RehearseOptions,
  conditions: readonly Condition[],
): Promise<Result> {
  const judgeAgent: JudgeAgent = figures => judge(conditions, figures)
  if (options.mirror !== undefined) return rehearseMirror(programs, options, judgeAgent)
  return rehearse(programs, readMarket(options), options, judgeAgent)
}

/** Plays a tape to programs on the embedded chain, and reports how they did. Without programs it only plays. */
export async function rehearse(
  programs: readonly Program[],
  named: NamedTape,
  options: PlayOptions,
  judgeAgent: JudgeAgent,
): Promise<Result> {
  const place = await reservePorts(programs)
  const isRead = programs.length > 0
  const market = await startMarket(named.tape, { chainId: options.chainId, baseUrl: urlAt(place.port), isRead })
  return reportOf(named, await playTo(programs, market, place, options), judgeAgent)
}

function reportOf({ tape, market, seed }: NamedTape, records: readonly AgentRecord[], judgeAgent: JudgeAgent): Result {
  const versions = {
    service: packageJson.version,
    node: process.version.slice(1),
    anvil: packageJson.optionalDependencies['@foundry-rs/anvil-linux-amd64'],
  }
  const setting = { market, seed, tapeHash: hashOf(tape), notes: tape.notes ?? [], versions }
  const played = pricesOf(tape)
  return { report: buildReport(setting, played, records, judgeAgent), market: played }
}

async function rehearseMirror(
  programs: readonly Program[],
  options: RehearseOptions,
  judgeAgent: JudgeAgent,
): Promise<Result> {
  const { mirror = '', chainId } = options
  if (programs.length === 0)
    throw new Failure('usage', 'A mirror has no end without an agent.', {
      code: 'AGENT_REQUIRED',
      remedy: 'Name its program after --, or with --agent.',
    })
  const place = await reservePorts(programs)
  const market = await startMirror(mirror, { chainId, baseUrl: urlAt(place.port) })
  process.once('SIGINT', market.end)
  const records = await playTo(programs, market, place, options)
  return reportOf({ tape: market.tape(), market: `mirror of ${mirror}`, seed: null }, records, judgeAgent)
}

/** The service's port, and one for each program. */
type Place = { port: number; agentPorts: number[]; release(): Promise<unknown> }

/** Listens on free ports until the service does: other programs may start many while the contracts are deployed. */
async function reservePorts(programs: readonly Program[]): Promise<Place> {
  const servers = [createServer(), ...programs.map(() => createServer())]
  for (const server of servers) await new Promise<void>(resolve => server.unref().listen(0, '127.0.0.1', resolve))
  const [port = 0, ...agentPorts] = servers.map(server => (server.address() as AddressInfo).port)
  const close = (server: Server) => new Promise<void>(resolve => server.close(() => resolve()))
  return { port, agentPorts, release: () => Promise.all(servers.map(close)) }
}

const urlAt = (port: number) => `http://127.0.0.1:${port}`

/** Reads a file that the user names. Throws a failure if it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = 'UNREADABLE' } = error as NodeJS.ErrnoException
    throw new Failure('usage', `${path} cannot be read (${code}).`, {
      code: 'FILE_UNREADABLE',
      remedy: 'Pass the path of a file that exists.',
    })
  }
}

/** Throws a failure if a file cannot be written, before anything is played for it. */
export function refuseUnwritable(paths: readonly (string | undefined)[]): void {
  for (const path of paths)
    try {
      if (path !== undefined) accessSync(dirname(path), constants.W_OK)
    } catch (error) {
      const { code = 'UNWRITABLE' } = error as NodeJS.ErrnoException
      throw new Failure('usage', `${path} cannot be written (${code}).`, {
        code: 'FILE_UNWRITABLE',
        remedy: 'Pass a path in a folder that exists.',
      })
    }
}

const readFileOf = (path: string, symbol: string | undefined, timeZone: string | undefined) => ({
  name: basename(path),
  text: readText(path),
  symbol,
  timeZone,
})

/** Reads the files of a tape. Throws TapeError. */
export const readTape = (
  files: readonly TapeFile[],
  { tz, path }: { tz?: string | undefined; path: RehearseOptions['path'] },
): Tape =>
  parseTape(
    files.map(file => readFileOf(file.path, file.symbol, tz)),
    path,
  )

function readMarket({ tape: files, market, ...options }: RehearseOptions): NamedTape {
  if (files.length > 0)
    return {
      tape: readTape(files, options),
      market: `tape ${files.map(({ path }) => basename(path)).join(', ')}`,
      seed: null,
    }
  const kind: MarketKind = market ?? DEFAULTS.kind
  const given = { ...DEFAULTS, ...options }
  const { vol, drift, correlation, days, seed, hours, stale } = given
  const tape = generateMarket({ kind, vol, drift, correlation, days, seed, allHours: hours === 'all', stale })
  return { tape, market: `${kind}, vol ${vol} %, drift ${drift} %, correlation ${correlation}, ${days} days`, seed }
}

/** Plays a market to programs at a service on a port, and stops both. */
async function playTo(
  programs: readonly Program[],
  market: EmbeddedMarket,
  { port, agentPorts, release }: Place,
  { hours, speed, mirror }: PlayOptions,
): Promise<AgentRecord[]> {
  const serviceUrl = urlAt(port)
  const running: { stop(): unknown }[] = [{ stop: release }, market]
  if (market.partDone !== undefined) running.push({ stop: showProgress(market.partDone) })
  try {
    if (programs.length === 0) {
      while (!market.now().isOver) await market.playStep({ isUndisturbed: true })
      return []
    }
    const stage = await openStage(market, serviceUrl)
    running.push({ stop: stage.close })
    await release()
    const worker = await startService([port, ...agentPorts], market, stage, { hours, isLive: mirror !== undefined })
    running.push(worker)
    const agents: AgentUnderTest[] = []
    for (const [index, program] of programs.entries()) {
      const account = market.deployment.accounts.agents[index]
      if (account === undefined) throw new Error(`At most ${index} agents are rehearsed at once.`)
      const url = urlAt(agentPorts[index] ?? port)
      agents.push(await registerAgent(serviceUrl, market.deployment, account, program, url))
    }
    const exitCodes = new Map<AgentUnderTest, number>()
    const seats = agents.map(agent => ({
      agentId: agent.agentId,
      begin: async (isAwaited: () => boolean) =>
        void exitCodes.set(agent, await runProgram(agent, market.deployment.rpcUrl, isAwaited)),
    }))
    if (mirror !== undefined) await stage.playLive(seats)
    else if (speed === undefined) await stage.play(seats)
    else await stage.playAt(speed, seats)
    return await Promise.all(
      agents.map(agent => recordOf(serviceUrl, agent, { exitCode: exitCodes.get(agent) ?? 1, shift: market.shift })),
    )
  } finally {
    for (const each of running.reverse()) await each.stop()
  }
}

const MEMORY = '/dev/shm'
const MIN_MEMORY_BYTES = 2 ** 30

/** Returns where the service stores its state: in memory if there is room, because each commit waits for the disk. */
function storageParent(): string {
  if (!existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize < MIN_MEMORY_BYTES ? tmpdir() : MEMORY
}

/** Serves the API on plain workerd, without the development server of wrangler, which would handle each request too. */
async function startService(
  [port, ...otherPorts]: number[],
  { deployment }: EmbeddedMarket,
  stage: Stage,
  { hours, isLive }: { hours: RehearseOptions['hours']; isLive: boolean },
): Promise<{ stop(): Promise<void> }> {
  const persistTo = mkdtempSync(join(storageParent(), 'agent-trading-service-rehearsal-'))
  const vars = {
    ...workerVars(deployment),
    // The agents are few, and their clock is faster than the machine's.
    ...unlimitedGas,
    ...unlimitedRequests,
    // A bar may be shorter than the default lease.
    READ_LEASE_MS: '0',
    KEEPER_ENABLED: 'true',
    MARKET_SESSIONS: hours === 'all' ? 'off' : 'enforced',
    // On a tape, a block follows each transaction, and none comes without.
    ...(!isLive && { BLOCKS_ON_DEMAND: 'true' }),
    REHEARSAL_URL: stage.url,
  }
  const remove = () => {
    process.off('exit', remove)
    rmSync(persistTo, { recursive: true, force: true, maxRetries: 3 })
  }
  process.once('exit', remove)
  try {
    const bundle = await bundleOnce('rehearsal/recording-worker.ts')
    const workerd = await startWorkerd({ port, otherPorts, persistTo, vars, bundle })
    return { stop: () => workerd.stop().finally(remove) }
  } catch (error) {
    remove()
    throw error
  }
}

/** Returns the prices at the end of each bar; a token without a new one keeps its last. */
function pricesOf({ symbols, steps, venue }: Tape): PlayedMarket {
  const last = new Map<string, bigint>()
  const times: number[] = []
  const prices: Record<string, bigint[]> = Object.fromEntries(symbols.map(symbol => [symbol, []]))
  for (const { time, prices: posted, endsBar } of steps) {
    for (const [symbol, price] of posted) last.set(symbol, price)
    if (!endsBar) continue
    times.push(time)
    for (const symbol of symbols) prices[symbol]?.push(last.get(symbol) ?? 0n)
  }
  const decimals = Object.fromEntries(symbols.map(symbol => [symbol, TOKEN_DECIMALS]))
  for (const token of venue?.tokens ?? []) decimals[token.symbol] = token.decimals
  return { times, prices, decimals }
}
