import { type ChildProcess, fork } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pooledSharpe, type RunRecord, type RunSpec } from './examination.ts'
import type { Job, JobResult } from './examination-worker.ts'

/** What a worker needs besides the run. */
export type WorkerSetup = Omit<Job, 'spec' | 'log'>

export type Progress = { done: number; total: number; secondsLeft: number | null }

/** What is stored of a run; a run without an agent has no record. */
export type StoredRun = { spec: RunSpec; tapeHash: string; bars: number; record: RunRecord | null }

const fileOf = (folder: string, { id }: RunSpec) => join(folder, `${id}.json`)

/**
 * Plays runs, several at a time, and stores each in its own file of the folder. Runs that are stored already are not
 * repeated. Throws if a market cannot be played; what is done stays stored.
 */
export async function playRuns(
  specs: readonly RunSpec[],
  setup: WorkerSetup,
  { folder, jobs, onProgress }: { folder: string; jobs: number; onProgress(progress: Progress): void },
): Promise<StoredRun[]> {
  mkdirSync(folder, { recursive: true })
  const missing = specs.filter(spec => !existsSync(fileOf(folder, spec)))
  const startedAt = performance.now()
  let played = 0
  const report = () =>
    onProgress({
      done: specs.length - missing.length + played,
      total: specs.length,
      secondsLeft: played === 0 ? null : ((performance.now() - startedAt) / 1000 / played) * (missing.length - played),
    })
  report()
  const queue = [...missing]
  const workers = Array.from({ length: Math.min(jobs, missing.length) }, async () => {
    const worker = startWorker()
    try {
      for (let spec = queue.shift(); spec !== undefined; spec = queue.shift()) {
        const stored = await worker.play({ ...setup, spec, log: join(folder, `${spec.id}.log`) })
        // Whole or not at all, so that an interrupted examination resumes.
        writeFileSync(`${fileOf(folder, spec)}.part`, `${JSON.stringify(stored)}\n`)
        renameSync(`${fileOf(folder, spec)}.part`, fileOf(folder, spec))
        played++
        report()
      }
    } catch (error) {
      queue.length = 0
      throw error
    } finally {
      worker.stop()
    }
  })
  const failed = (await Promise.allSettled(workers)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  return specs.map(spec => readRun(fileOf(folder, spec)))
}

function readRun(file: string): StoredRun {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Error(`${file} is not a run. Delete it, and it is played again.`, { cause })
  }
}

function startWorker() {
  const child: ChildProcess = fork(join(import.meta.dirname, 'examination-worker.ts'), [], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  return {
    play: (job: Job) =>
      new Promise<StoredRun>((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`${job.spec.id} ended with exit code ${code}.`))
        child.once('exit', onExit)
        child.once('message', (result: JobResult) => {
          child.off('exit', onExit)
          if ('problem' in result) reject(new Error(`${job.spec.id}: ${result.problem}`))
          else resolve(result)
        })
        child.send(job)
      }),
    stop: () => child.disconnect(),
  }
}

/**
 * Returns the pooled Sharpe ratio of every other agent that was examined on the same markets: `folder` has a folder for
 * each, with its runs.
 */
export function otherSharpes(folder: string, ownName: string): number[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && entry.name !== ownName)
    .flatMap(({ name }) => {
      const files = readdirSync(join(folder, name)).filter(file => file.endsWith('.json'))
      const records = files.flatMap(file => readRun(join(folder, name, file)).record ?? [])
      return records.length === 0 ? [] : [pooledSharpe(records) ?? 0]
    })
}
