import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** What a child process reports; `problem` is an Error's message. */
export type Report = { url: string } | { done: true } | { problem: string }

/** A process of ours with everything it has started: they end together, at the latest with this one. */
export type Child = {
  pid: number
  /** Everything that it has printed. */
  logs(): string
  send(message: object): void
  /** Its next report; throws when that tells of a problem, or when the process ends before it comes. */
  report(): Promise<Exclude<Report, { problem: string }>>
  exited: Promise<unknown>
  /** Ends it at once, without a chance to tidy up. */
  kill9(): Promise<void>
}

const TICKS_PER_SECOND = 100

export function startChild(script: string, env: Record<string, string> = {}): Child {
  const child = fork(script, [], {
    execArgv: [],
    detached: true, // a group of its own
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, ...env },
  })
  const pid = child.pid ?? 0
  const endGroup = () => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // it is gone already
    }
  }
  process.once('exit', endGroup)
  const exited = once(child, 'exit').finally(() => process.off('exit', endGroup))
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  return {
    pid,
    logs: () => printed,
    send: message => void (child.connected && child.send(message)),
    async report() {
      const ended = exited.then((): [Report] => [{ problem: `it ended: ${printed.slice(-4_000)}` }])
      const [report] = (await Promise.race([once(child, 'message'), ended])) as [Report]
      if ('problem' in report) throw new Error(report.problem)
      return report
    },
    exited,
    async kill9() {
      endGroup()
      await exited
    },
  }
}

/** The process of a name that another one has started. */
export function childOf(parent: number, name: string): number {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' }).split('\n')
  const rows = lines.map(line => line.trim().split(/\s+/))
  const pid = rows.find(([, ppid, command]) => Number(ppid) === parent && command?.includes(name))?.[0]
  if (pid === undefined) throw new Error(`${name} is not running`)
  return Number(pid)
}

/** CPU seconds that a process has used, of all its threads. */
export function cpuSeconds(pid: number): number {
  if (process.platform === 'linux') {
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }
  const time = execFileSync('ps', ['-o', 'time=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
  return time.split(':').reduce((seconds, part) => seconds * 60 + Number(part), 0)
}
