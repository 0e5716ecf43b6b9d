import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'

const BIN = join(import.meta.dirname, '../node_modules/.bin')

export type CommandResult = { code: number; output: string }
/** Runs wrangler for one environment. `quiet` keeps its output from the terminal. */
export type Wrangler = (args: string[], options?: { quiet?: boolean }) => Promise<CommandResult>

/** Returns a way to run the `wrangler` of PATH, which npm makes the project's own, without questions to a terminal. */
export const wranglerOf =
  (config: string, environment: string): Wrangler =>
  (args, { quiet = false } = {}) =>
    runCommand('wrangler', [...args, '--env', environment, '--config', config], quiet)

/** Runs a command and returns its exit code with everything that it printed. */
export function runCommand(command: string, args: string[], quiet: boolean): Promise<CommandResult> {
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${process.env.PATH}${delimiter}${BIN}`, WRANGLER_SEND_METRICS: 'false' },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (!quiet) process.stdout.write(text)
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve({ code: code ?? 1, output }))
  })
}
