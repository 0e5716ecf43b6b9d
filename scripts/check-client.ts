import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'

// Builds and packs the TypeScript client, and checks what a program gets that installs it: its types with TypeScript's
// own compiler, its package with publint and attw, and the size of its main entry. Exits with code 1 if one fails.
const MAX_MAIN_ENTRY_BYTES = 33_250

const root = join(import.meta.dirname, '..')
const folder = join(root, 'packages/client')
const resolve = createRequire(join(folder, 'package.json')).resolve
const scratch = mkdtempSync(join(tmpdir(), 'agent-trading-service-client-'))

/** Runs a command and returns its output; throws with it if the command fails. */
async function run(command: string, args: string[], cwd = root): Promise<string> {
  const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' }
  try {
    return (await promisify(execFile)(command, args, { cwd, env, maxBuffer: 1 << 26 })).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${command} ${args.join(' ')}\n${stdout}${stderr}`)
  }
}

/** Returns the size of a module with everything it imports but viem, as published and compressed. */
function sizeOf(file: string, seen = new Set<string>()): number {
  if (seen.has(file)) return 0
  seen.add(file)
  const source = readFileSync(file, 'utf8')
  const imported = [...source.matchAll(/^(?:import|export)\b[^'"]*["']([^'"]+)["']/gm)].map(match => match[1] ?? '')
  const sizes = imported
    .filter(name => name !== 'viem' && !name.startsWith('viem/'))
    .map(name =>
      sizeOf(name.startsWith('.') ? join(dirname(file), name) : resolve(name).replace(/\.cjs$/, '.js'), seen),
    )
  return gzipSync(source, { level: 9 }).length + sizes.reduce((total, size) => total + size, 0)
}

try {
  await run(process.execPath, [resolve('typescript/bin/tsc'), '-p', folder])
  await run(process.execPath, [join(dirname(resolve('tsdown')), 'run.mjs')], folder)
  const size = sizeOf(join(folder, 'dist/index.js'))
  console.log(`main entry ${(size / 1000).toFixed(1)} kB gzip without viem (budget ${MAX_MAIN_ENTRY_BYTES / 1000})`)
  if (size > MAX_MAIN_ENTRY_BYTES) process.exitCode = 1
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', scratch], folder)
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  const tarball = join(scratch, `agent-trading-service-client-${version}.tgz`)
  await run(join(root, 'node_modules/.bin/publint'), ['run', tarball, '--strict'])
  await run(join(root, 'node_modules/.bin/attw'), [tarball, '--profile', 'esm-only', '--no-emoji'])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
