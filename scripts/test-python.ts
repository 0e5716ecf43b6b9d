import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// `npm run test:python`: installs packages/python with its tools from PyPI into a virtual environment, then lints it,
// checks its types and runs its tests, which start the embedded chain and the service. PYTHON names another
// interpreter; `--short` is what CI runs, without the types and the tests marked as long; other arguments go to pytest.

const UV = 'uv==0.13.9'
const folder = join(import.meta.dirname, '../packages/python')
const environment = mkdtempSync(join(tmpdir(), 'agent-trading-service-python-'))
const python = join(environment, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')
const isShort = process.argv.includes('--short')
const args = process.argv.slice(2).filter(argument => argument !== '--short')
const install = ['-m', 'uv', 'pip', 'install', '--quiet', '--python', python]
type Step = { command?: string; args: string[]; onFailure?: string }
const steps: Step[] = [
  {
    command: process.execPath,
    args: [join(import.meta.dirname, 'generate-client.ts')],
  },
  {
    command: process.env.PYTHON || 'python3',
    args: ['-m', 'venv', environment],
    onFailure: 'Python 3.10 or newer with `venv` is needed; PYTHON names the interpreter.',
  },
  ...[
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', UV],
    // The versions of requirements.txt, so that a release of a dependency breaks no build.
    [...install, '--requirement', 'requirements.txt'],
  ].map(args => ({
    args,
    onFailure: 'PyPI could not be reached, or lacks a version of packages/python/requirements.txt.',
  })),
  { args: [...install, '--no-deps', '--no-build-isolation', '--editable', '.'] },
  { args: ['-m', 'ruff', 'check', '.'] },
  { args: ['-m', 'ruff', 'format', '--check', '.'] },
  ...(isShort ? [] : [{ args: ['-m', 'mypy', '.'] }]),
  { args: ['-m', 'pytest', ...(isShort ? ['-m', 'not long'] : []), ...args] },
]
try {
  for (const { command = python, args, onFailure } of steps) {
    const { status, error } = spawnSync(command, args, { cwd: folder, stdio: 'inherit' })
    if (error) console.error(error.message)
    if (status === 0) continue
    console.error(`test:python: ${[command, ...args].join(' ')} failed. ${onFailure ?? ''}`)
    process.exitCode = status ?? 1
    break
  }
} finally {
  rmSync(environment, { recursive: true, force: true })
}
