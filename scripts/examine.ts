import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../package.json' with { type: 'json' }
import { createExamineCommand, type ExamineOptions } from '../packages/cli/src/commands/examine.ts'
import { Failure } from '../packages/cli/src/failure.ts'
import { homeFolder } from '../packages/cli/src/keys/key-folder.ts'
import { openSigner } from '../packages/cli/src/keys/signer.ts'
import { toFailure } from '../packages/cli/src/output/to-failure.ts'
import { programOf } from '../rehearsal/agent-under-test.ts'
import {
  certify,
  checkCertificate,
  checkOrigin,
  claimOf,
  describeResult,
  parseCertificate,
} from '../rehearsal/certificate.ts'
import { pooledSharpe, statisticsOf } from '../rehearsal/examination.ts'
import { examinationPage } from '../rehearsal/examination-page.ts'
import { examinationText } from '../rehearsal/examination-text.ts'
import { ALL_KINDS, declareAgent, type MarketPlan, marketHash, planRuns } from '../rehearsal/plan-examination.ts'
import { otherSharpes, type Progress, playRuns } from '../rehearsal/run-examination.ts'
import { readTape, readText, refuseUnwritable } from '../rehearsal/run-rehearsal.ts'
import { timeLeftText } from '../rehearsal/show-progress.ts'

// `npm run examine -- --seeds 100 --days 30 -- node agent.mjs`, and what `ats examine` runs in a clone. Exits with 1 if
// a program fails or a certificate does not hold, with 2 if the examination cannot be played.

async function examine(command: string[], options: ExamineOptions): Promise<void> {
  refuseWithoutAgent(command, options)
  refuseUnwritable([options.report, options.json, options.certificate])
  // Asked for before anything starts.
  const author = options.certificate === undefined ? undefined : await openSigner(homeFolder(), options).unlock()
  const certificate =
    options.recompute === undefined ? undefined : parseCertificate(options.recompute, readText(options.recompute))
  const plan: MarketPlan = certificate?.result.markets.plan ?? planOf(options)
  const tape = options.tape.length === 0 ? undefined : readTape(options.tape, options)
  if (tape === undefined) refuseWithoutTape(plan)
  const agent = declareAgent(command)
  const markets = marketHash(plan, tape, packageJson.version)
  const early = certificate === undefined ? [] : await checkOrigin(certificate, markets)
  if (early.length > 0) {
    for (const difference of early) console.log(`DIFFERS: ${difference}`)
    process.exitCode = 1
    return
  }
  const folder = join(options.out, markets.slice(0, 12))
  const own = agent.hash.slice(0, 12)
  const { tape: files, tz, path, chainId } = options
  const [started, ...args] = command
  const program = started === undefined ? undefined : programOf([started, ...args])
  const name = program?.name ?? ''
  const specs = planRuns(plan, tape !== undefined)
  // What was stored before proves nothing.
  if (certificate !== undefined) rmSync(join(folder, own), { recursive: true, force: true })
  const runs = await playRuns(
    specs,
    { plan, tape: files, tz, path, chainId, program },
    { folder: join(folder, own), jobs: options.jobs, onProgress },
  )
  const records = runs.flatMap(({ record }) => record ?? [])
  const [first, ...others] = records
  if (first === undefined) {
    const bars = runs.reduce((sum, run) => sum + run.bars, 0)
    console.log(`${runs.length} markets of ${bars} bars were played to nobody.`)
    return
  }
  const sharpes = [pooledSharpe(records) ?? 0, ...otherSharpes(folder, own)]
  const statistics = statisticsOf([first, ...others], sharpes)
  const result = describeResult({ agent, plan, markets, records, statistics })
  console.log(examinationText(name, statistics))
  if (options.report !== undefined) writeFileSync(options.report, examinationPage(name, records, statistics))
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify({ ...result, records }, null, 2)}\n`)
  if (options.certificate !== undefined && author !== undefined) {
    const own = await certify(result, author, options.owner)
    writeFileSync(options.certificate, `${JSON.stringify(own, null, 2)}\n`)
    console.log(`\nCertificate ${own.hash}\nof examination 0x${markets}, for agents of ${own.owner}.`)
    console.log(`\nThe agent's page shows it if the metadata URI ends in\n${claimOf(own)}`)
  }
  const differences = certificate === undefined ? [] : await checkCertificate(certificate, result)
  for (const difference of differences) console.log(`DIFFERS: ${difference}`)
  if (certificate !== undefined && differences.length === 0)
    console.log(`The certificate ${certificate.hash} of ${certificate.author} holds.`)
  process.exitCode = differences.length > 0 || statistics.failed > 0 ? 1 : 0
}

const planOf = ({ seeds, days, market, hours, windows, disguises }: ExamineOptions): MarketPlan => ({
  seeds,
  days,
  kinds: market.length > 0 ? market : ALL_KINDS,
  allHours: hours === 'all',
  windows,
  disguises,
})

/** Refuses to write or recompute a result without an agent, which has none. */
function refuseWithoutAgent(command: readonly string[], options: ExamineOptions): void {
  const asked = (['certificate', 'recompute', 'report', 'json'] as const).find(name => options[name] !== undefined)
  if (command.length === 0 && asked !== undefined)
    throw new Failure('usage', `--${asked} needs the result of an agent.`, {
      code: 'AGENT_REQUIRED',
      remedy: 'Name its program after --.',
    })
}

/** Refuses a plan with nothing to play, or with parts of a tape that is not given. */
function refuseWithoutTape({ seeds, windows, disguises }: MarketPlan): void {
  if (windows > 0 || disguises > 0)
    throw new Failure('usage', 'Windows and disguises are made of a tape.', {
      code: 'TAPE_REQUIRED',
      remedy: 'Pass the tape with --tape.',
    })
  if (seeds === 0)
    throw new Failure('usage', 'Without seeds and without a tape there is no market to play.', {
      code: 'MARKET_REQUIRED',
      remedy: 'Pass --seeds with a number above 0, or --tape with --windows.',
    })
}

/** Shows progress on one line of a terminal; elsewhere a line for every tenth run. */
function onProgress({ done, total, secondsLeft }: Progress): void {
  const isBefore = secondsLeft === null && done > 0
  const left = secondsLeft === null ? '' : `, about ${timeLeftText(secondsLeft)} left`
  const text = `${done} of ${total} runs${isBefore ? ' are stored from before' : left}`
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}${done === total ? '\n' : ''}`)
  else if (isBefore || done === total || done % 10 === 0) console.error(text)
}

try {
  await createExamineCommand(examine)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parseAsync(process.argv.slice(2), { from: 'user' })
} catch (error) {
  const { kind, message, commandRemedy } = toFailure(error)
  console.error(kind === 'internal' ? message : `${message} ${commandRemedy ?? ''}`)
  process.exitCode = 2
}
