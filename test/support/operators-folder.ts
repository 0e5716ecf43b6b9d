import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseEnv } from 'node:util'
import { type AtsResult, finished } from './ats.ts'

const root = join(import.meta.dirname, '../..')
/** What an operator's commands write, and what finds that by its own path. */
const COPIED = ['scripts', 'wrangler.toml', 'package.json', '.npmrc']
/** Runs the same program without the start-up of npm. */
const NPX = 'npx() { "$@"; }\n'

export type OperatorsFolder = ReturnType<typeof createOperatorsFolder>

/** Creates a folder that is like a clone of this repository, in which commands of the documentation run as written. */
export function createOperatorsFolder(variables: Record<string, string>) {
  const path = mkdtempSync(join(tmpdir(), 'operator-'))
  for (const name of readdirSync(root)) {
    if (COPIED.includes(name)) cpSync(join(root, name), join(path, name), { recursive: true })
    else if (!name.startsWith('.')) symlinkSync(join(root, name), join(path, name))
  }
  const env = {
    PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
    HOME: path,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    npm_config_update_notifier: 'false',
    ...variables,
  }

  const run = (script: string, input = ''): Promise<AtsResult> =>
    finished(spawn('bash', ['-euo', 'pipefail', '-c', NPX + script], { cwd: path, env }), input)

  return {
    path,
    /** Runs a script in bash up to the first command that fails. */
    run,
    /** Runs a script that must succeed and returns its output. */
    async succeed(script: string, input?: string): Promise<string> {
      const { code, stdout, stderr } = await run(script, input)
      if (code !== 0) throw new Error(`${script}\nexited with ${code}:\n${stdout}\n${stderr}`)
      return stdout
    },
    read: (file: string) => readFileSync(join(path, file), 'utf8'),
    write: (file: string, text: string) => writeFileSync(join(path, file), text),
    /** Fills in variables of a vars file that has a line for each, and keeps the other lines. */
    fillIn(file: string, values: Record<string, string>) {
      const text = Object.entries(values).reduce(
        (text, [name, value]) => text.replace(new RegExp(`^${name}='.*'$`, 'm'), `${name}='${value}'`),
        readFileSync(join(path, file), 'utf8'),
      )
      const written = parseEnv(text)
      for (const [name, value] of Object.entries(values))
        if (written[name] !== value) throw new Error(`${file} has no line for ${name}`)
      writeFileSync(join(path, file), text)
    },
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }),
  }
}
