import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// `npm run test:python`: installs packages/python with its tools from PyPI into a virtual environment, then lints it, checks its
// types and runs its tests, which start the embedded chain and the service. PYTHON names another interpreter; arguments go to pytest.

const folder = join(import.meta.dirname, '../packages/python')
const environment = mkdtempSync(join(tmpdir(), 'agent-trading-service-python-'))
const python = join(environment, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')
const steps: [string, ...string[]][] = [
  [process.env.PYTHON || 'python3', '-m', 'venv', environment],
  [python, '-m', 'pip', 'install', '--quiet', '-e', '.[dev]'],
  [python, '-m', 'ruff', 'check', '.'],
  [python, '-m', 'ruff', 'format', '--check', '.'],
  [python, '-m', 'mypy', '.'],
  [python, '-m', 'pytest', ...process.argv.slice(2)],
]
try {
  for (const [command, ...args] of steps) {
    const { status, error } = spawnSync(command, args, { cwd: folder, stdio: 'inherit' })
    if (error) console.error(error.message)
    if (status === 0) continue
    process.exitCode = status ?? 1
    break
  }
} finally {
  rmSync(environment, { recursive: true, force: true })
}
