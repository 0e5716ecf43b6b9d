// Runs the forge binary of this platform in contracts/: npm's own `forge` shim exits 0 whatever happens.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
const suffix = process.platform === 'win32' ? '.exe' : ''
const binary = require.resolve(`@foundry-rs/forge-${process.platform}-${arch}/bin/forge${suffix}`)
const run = spawnSync(binary, process.argv.slice(2), {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  stdio: 'inherit',
})
if (run.error) throw run.error
if (run.signal) process.kill(process.pid, run.signal)
process.exit(run.status ?? 1)
