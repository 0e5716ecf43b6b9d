import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Writes a file in one move, and not at all if it is the same: another process may be reading it. */
export function writeOutput(path: string, content: string | Buffer): void {
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.${process.pid}`, content)
  renameSync(`${path}.${process.pid}`, path)
}

/** Builds what `output` names, unless it is there and no source has changed since. `--force` always builds. */
export async function buildIfChanged(
  { name, sources, output }: { name: string; sources: string[]; output: string },
  build: () => void | Promise<void>,
): Promise<void> {
  const stamp = join(root, 'dist', `${name}.sha256`)
  const hash = hashOf([...sources, 'package-lock.json'])
  const isCurrent = existsSync(stamp) && existsSync(join(root, output)) && readFileSync(stamp, 'utf8') === hash
  if (isCurrent && !process.argv.includes('--force')) return
  await build()
  writeOutput(stamp, hash)
}

function hashOf(sources: string[]): string {
  const hash = createHash('sha256')
  const files = globSync(sources, { cwd: root, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  for (const file of files.sort()) hash.update(relative(root, file)).update(readFileSync(file))
  return hash.digest('hex')
}
