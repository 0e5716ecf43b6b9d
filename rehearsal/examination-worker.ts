import { closeSync, openSync } from 'node:fs'
import type { RehearseOptions, TapeFile } from '../packages/cli/src/commands/rehearse.ts'
import type { Program } from './agent-under-test.ts'
import { type RunSpec, recordRun } from './examination.ts'
import { type MarketPlan, tapeOfRun } from './plan-examination.ts'
import type { StoredRun } from './run-examination.ts'
import { readTape, rehearse } from './run-rehearsal.ts'
import type { Tape } from './tape.ts'

// The child process of an examination: plays one run after another, each on a chain and a service of its own. It ends
// with its parent.

export type Job = {
  spec: RunSpec
  plan: MarketPlan
  /** The files of the tape; none without one. */
  tape: TapeFile[]
  tz: string | undefined
  path: RehearseOptions['path']
  chainId: number
  /** Undefined to play the market to nobody. */
  program: Program | undefined
  /** The file that gets what the program prints. */
  log: string
}
export type JobResult = StoredRun | { problem: string }

let source: Tape | undefined

async function play({ spec, plan, tape: files, tz, path, chainId, program, log }: Job): Promise<StoredRun> {
  if (files.length > 0) source ??= readTape(files, { tz, path })
  const tape = tapeOfRun(spec, plan, source)
  const output = openSync(log, 'w')
  try {
    const programs = program === undefined ? [] : [{ ...program, env: { ATS_SEED: `${spec.seed}` }, output }]
    const { report, market } = await rehearse(
      programs,
      { tape, market: spec.id, seed: spec.seed },
      { chainId, hours: plan.allHours ? 'all' : 'market' },
      () => [],
    )
    const record = program === undefined ? null : recordRun(spec, report, market)
    return { spec, tapeHash: report.tapeHash, bars: report.bars, record }
  } finally {
    closeSync(output)
  }
}

const send = (result: JobResult) => process.send?.(result)

process.on('message', (job: Job) => {
  play(job).then(send, error => send({ problem: error instanceof Error ? error.message : `${error}` }))
})
for (const end of ['disconnect', 'SIGINT', 'SIGTERM'] as const) process.on(end, () => process.exit())
