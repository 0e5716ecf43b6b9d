import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { parseEnv } from 'node:util'

const root = join(import.meta.dirname, '../..')
/** What an operator's commands write, or what finds the rest by its own path. */
const COPIED = ['scripts', 'wrangler.toml', 'package.json', '.npmrc']
/** Without the start-up of npm, which finds the same program. */
const NPX = 'npx() { "$@"; }\n'

export type Outcome = { code: number | null; stdout: string; stderr: string }
export type OperatorsFolder = ReturnType<typeof createOperatorsFolder>

/** Creates a folder that is like a clone of this repository, in which commands of the documentation run as written. */
export function createOperatorsFolder(variables: Record<string, string>) {
  const path = mkdtempSync(join(tmpdir(), 'operator-'))
  for (const name of readdirSync(root)) {
    if (COPIED.includes(name)) cpSync(join(root, name), join(path, name), { recursive: true })
    else if (!name.startsWith('.')) symlinkSync(join(root, name), join(path, name))
  }
  const env: Record<string, string> = {
    PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
    HOME: path,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    ...variables,
  }

  return {
    path,
    env,
    /** Runs a script in bash up to the first command that fails. */
    async run(script: string): Promise<Outcome> {
      const child = spawn('bash', ['-euo', 'pipefail', '-c', `${NPX}${script}`], {
        cwd: path,
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const output = { stdout: '', stderr: '' }
      for (const name of ['stdout', 'stderr'] as const)
        child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
      const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
      return { code, ...output }
    },
    read: (file: string) => readFileSync(join(path, file), 'utf8'),
    write: (file: string, text: string) => writeFileSync(join(path, file), text),
    /** Fills in variables of a vars file that has an empty line for each, and keeps the other lines. */
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

/** Commands and settings of a section of a Markdown page, by the headings within it. '' is what comes before the first. */
export function codeBlocksOf(page: string, heading: string): Map<string, { language: string; code: string }[]> {
  const section = readFileSync(join(root, page), 'utf8').split(`\n## ${heading}\n`)[1]?.split(/^## /m)[0] ?? ''
  const parts = section.split(/^### /m).map((text, index) => {
    const [, title = '', rest = ''] = index === 0 ? ['', '', text] : (/^(.*)\n([\s\S]*)$/.exec(text) ?? [])
    const blocks = [...rest.matchAll(/```(\w+)\n([\s\S]*?)```/g)]
    return [title, blocks.map(([, language = '', code = '']) => ({ language, code }))] as const
  })
  return new Map(parts)
}
