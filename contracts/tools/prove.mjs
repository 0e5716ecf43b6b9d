// `npm run sol:prove`: proves contracts/proofs for all inputs of their stated ranges, with Halmos. It uses the `halmos`
// on the PATH, or installs the version below into contracts/cache (Python 3.11 or later). Arguments go to Halmos.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'

const HALMOS = 'halmos==0.3.3'

const contracts = fileURLToPath(new URL('..', import.meta.url))
const cache = `${contracts}cache`
const tools = `${cache}/proof-tools`
const venv = `${cache}/halmos`
mkdirSync(tools, { recursive: true })

// Halmos calls `forge` by name, and npm's own shim exits with 0 whatever happens.
const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
const forge = createRequire(import.meta.url).resolve(`@foundry-rs/forge-${process.platform}-${arch}/bin/forge`)
rmSync(`${tools}/forge`, { force: true })
symlinkSync(forge, `${tools}/forge`)
process.env.PATH = [tools, process.env.PATH, `${venv}/bin`].join(delimiter)
process.env.FOUNDRY_PROFILE = 'proofs'
// Halmos runs every artifact, also that of a proof that is gone.
for (const folder of ['out', 'cache']) rmSync(`${contracts}${folder}/proofs`, { recursive: true, force: true })

const isInstalled = spawnSync('halmos', ['--version']).status === 0
if (!isInstalled && !existsSync(`${venv}/bin/halmos`)) {
  run('python3', ['-m', 'venv', venv])
  run(`${venv}/bin/pip`, ['install', '--quiet', HALMOS])
}
run('halmos', [
  '--root',
  '.',
  '--forge-build-out',
  'out/proofs',
  '--solver',
  'yices',
  '--loop',
  '6',
  ...process.argv.slice(2),
])

function run(command, args) {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit', cwd: contracts })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
}
