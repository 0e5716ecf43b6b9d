import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, loadavg, platform, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { anvilBinary } from '../devnet/anvil.ts'

const file = join(import.meta.dirname, 'results.md')
const HEADING = '# Measurements\n\nEach command writes its own section; ratios compare runs on the same machine.\n'

/** Writes a command's section to bench/results.md, in place of its previous one. */
export function writeSection(name: string, text: string): void {
  const [start, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->\n`]
  const before = existsSync(file) ? readFileSync(file, 'utf8') : HEADING
  const section = `${start}${text.trim()}\n${end}`
  const from = before.indexOf(start)
  const to = before.indexOf(end)
  const isThere = from >= 0 && to > from
  writeFileSync(
    file,
    isThere ? before.slice(0, from) + section + before.slice(to + end.length) : `${before}\n${section}`,
  )
}

/** Describes this machine in one paragraph; the load average is that of the last minute. */
export function describeMachine(): string {
  const version = (name: string) => createRequire(import.meta.url)(`${name}/package.json`).version as string
  const anvil = execFileSync(anvilBinary(), ['--version'], { encoding: 'utf8' })
    .split('\n')[0]
    ?.replace(/^anvil Version: /, '')
  const gib = Math.round(totalmem() / 2 ** 30)
  return [
    `${cpus()[0]?.model.trim() ?? 'unknown CPU'}, ${cpus().length} cores, ${gib} GiB, ${platform()} ${release()}`,
    `Node ${process.version}, anvil ${anvil}, workerd ${version('workerd')}, viem ${version('viem')}, Express ${version('express')}`,
    `load average at the start ${(loadavg()[0] ?? 0).toFixed(2)}, ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
  ].join('; ')
}

/** Formats a Markdown table. */
export const table = (head: string[], rows: string[][]): string =>
  [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
