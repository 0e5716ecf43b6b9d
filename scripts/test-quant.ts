import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// `npm run test:quant`: computes statistics of random series with quantstats and SciPy, which it installs from PyPI
// into a temporary folder, and compares them with those that the unit tests expect. `--write` replaces those. PYTHON
// names another interpreter.

const PACKAGES = ['numpy==2.3.5', 'pandas==2.3.3', 'scipy==1.16.3', 'quantstats==0.0.86']
const root = join(import.meta.dirname, '..')
const fixture = join(root, 'test/unit/return-statistics.json')
const environment = mkdtempSync(join(tmpdir(), 'agent-trading-service-quant-'))
const python = join(environment, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')

const run = (command: string, ...args: string[]) => {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2] })
  if (error !== undefined || status !== 0) throw new Error(`${command} ${args.join(' ')} failed.`, { cause: error })
}

try {
  run(process.env.PYTHON || 'python3', '-m', 'venv', environment)
  run(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...PACKAGES)
  const computed = execFileSync(python, [join(root, 'test/quant/reference.py')], {
    maxBuffer: 1 << 26,
    stdio: ['ignore', 'pipe', 2],
  }).toString()
  if (process.argv.includes('--write')) writeFileSync(fixture, computed)
  else if (!isNear(JSON.parse(readFileSync(fixture, 'utf8')), JSON.parse(computed)))
    throw new Error('quantstats and SciPy compute other figures than test/unit/return-statistics.json has.')
} finally {
  rmSync(environment, { recursive: true, force: true })
}

/** Compares two values of JSON whose numbers may differ by rounding. */
function isNear(a: unknown, b: unknown): boolean {
  if (typeof a === 'number' && typeof b === 'number') return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a))
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [left, right] = [a, b].map(each => new Map(Object.entries(each))) as [
    Map<string, unknown>,
    Map<string, unknown>,
  ]
  return left.size === right.size && [...left].every(([key, value]) => isNear(value, right.get(key)))
}
