import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** What a child process reports; `problem` is an Error's message. */
export type ChildReport = { url: string } | { done: true } | { heapBytes: number } | { problem: string }

/** A child process and the processes it started: all exit together, at the latest with this process. */
export type Child = {
  pid: number
  /** All output of the child. */
  logs(): string
  send(message: object): void
  /** Returns the next report; throws if it is a problem, or if the process exits first. */
  report(): Promise<Exclude<ChildReport, { problem: string }>>
  exited: Promise<unknown>
  /** Kills the process group with SIGKILL. */
  kill9(): Promise<void>
}

const TICKS_PER_SECOND = 100

export function startChild(script: string, env: Record<string, string> = {}): Child {
  const child = fork(script, [], {
    execArgv: [],
    serialization: 'advanced', // messages carry the bytes of WebAssembly modules
    detached: true, // its own process group
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: { ...process.env, ...env },
  })
  const pid = child.pid ?? 0
  const killGroup = () => {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // the group has exited already
    }
  }
  process.once('exit', killGroup)
  const exited = once(child, 'exit').finally(() => process.off('exit', killGroup))
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
      const ended = exited.then((): [ChildReport] => [{ problem: `The process exited: ${printed.slice(-4_000)}` }])
      const [report] = (await Promise.race([once(child, 'message'), ended])) as [ChildReport]
      if ('problem' in report) throw new Error(report.problem)
      return report
    },
    exited,
    async kill9() {
      killGroup()
      await exited
    },
  }
}

/** Returns the id of the process that `parent` started under the given name; throws if there is none. */
export function childOf(parent: number, name: string): number {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,comm='], { encoding: 'utf8' }).split('\n')
  const rows = lines.map(line => line.trim().split(/\s+/))
  const pid = rows.find(([, ppid, command]) => Number(ppid) === parent && command?.includes(name))?.[0]
  if (pid === undefined) throw new Error(`${name} is not running.`)
  return Number(pid)
}

/** Returns the CPU time of all threads of a process, in seconds. */
export function cpuSeconds(pid: number): number {
  if (process.platform === 'linux') {
    // The name in parentheses may contain spaces; utime and stime are the 12th and 13th fields after it.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }
  const time = execFileSync('ps', ['-o', 'time=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
  return time.split(':').reduce((seconds, part) => seconds * 60 + Number(part), 0)
}

/** Returns the memory of a process, in MiB. */
export function residentMebibytes(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'rss=', '-p', `${pid}`], { encoding: 'utf8' })) / 1_024
}
