import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse, stringify } from 'yaml'
import { freePort } from '../devnet/anvil.ts'
import { startDevnet } from '../devnet/index.ts'
import { startWorker } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import { createScene } from '../test/support/scene.ts'
import { alertExpressions, dashboardExpressions } from './watch-expressions.ts'

// `npm run ops:try`: tries the alert rules and the dashboard against Prometheus, which scrapes the service on an
// embedded chain. Needs `prometheus` and `promtool` (Debian: apt-get install prometheus) on PATH, or in the folder
// PROMETHEUS_BIN.
const bin = (name: string) => (process.env.PROMETHEUS_BIN ? join(process.env.PROMETHEUS_BIN, name) : name)
const rules = join(import.meta.dirname, '../ops/prometheus')
const OPERATOR_SECRET = 'tried-by-the-operator'
const TIMEOUT_MS = 90_000

for (const args of [
  ['check', 'config', '--syntax-only', join(rules, 'prometheus.yml')],
  ['check', 'rules', join(rules, 'alerts.yml')],
  ['test', 'rules', join(rules, 'alerts.test.yml')],
]) {
  const { status, error } = spawnSync(bin('promtool'), args, { stdio: 'inherit' })
  if (error) throw new Error(`promtool does not start (${error.message}): install Prometheus or set PROMETHEUS_BIN`)
  if (status !== 0) process.exit(1)
}

type QueryResult = { status: string; error?: string; data: { result: unknown[] } }
type ActiveTargets = { data: { activeTargets: { health: string; lastError: string; lastScrapeDuration: number }[] } }
type RuleGroups = { data: { groups: { rules: { name: string; health: string; state: string }[] }[] } }

const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-prometheus-'))
const devnet = await startDevnet()
const worker = await startWorker({
  port: await freePort(),
  vars: { ...workerVars(devnet.deployment), OPERATOR_SECRET, X402_ENABLED: 'false', SUBMISSION_TIMEOUT_MS: '15000' },
})
const port = await freePort()
const prometheus = spawn(
  bin('prometheus'),
  [
    `--config.file=${configuration(new URL(worker.url).host)}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ],
  { stdio: ['ignore', 'inherit', 'inherit'] },
)
try {
  const { register, trade, request } = createScene(worker.url, devnet.deployment)
  await trade(await register(0, 'Watched'), 'open', { symbol: 'NVDA', usdcAmount: '25' })
  await request('/agents/999999').catch(() => undefined)
  await until('two scrapes with the trade', async () => {
    const { data } = await api<QueryResult>(
      `query?query=${encodeURIComponent('count_over_time(ats_transactions_total[5m]) > 1')}`,
    )
    return data.result.length > 0
  })
  const [target] = (await api<ActiveTargets>('targets')).data.activeTargets
  console.log(
    `scrape     ${target?.health} ${target?.lastError} in ${Math.round((target?.lastScrapeDuration ?? 0) * 1000)} ms`,
  )
  let failures = target?.health === 'up' ? 0 : 1
  for (const { from, query } of [...dashboardExpressions(), ...alertExpressions()]) {
    const { status, error, data } = await api<QueryResult>(`query?query=${encodeURIComponent(query)}`)
    if (status !== 'success') failures++
    console.log(`${status === 'success' ? `${data.result.length} series` : `FAILED ${error}`}\t${from}`)
  }
  const found = (await api<RuleGroups>('rules')).data.groups.flatMap(group => group.rules)
  failures += found.filter(({ health }) => health !== 'ok').length
  const firing = found.filter(({ state }) => state === 'firing').map(({ name }) => name)
  console.log(`${found.length} rules evaluated, firing: ${firing.join(', ') || 'none'}; ${failures} failures`)
  process.exitCode = failures === 0 ? 0 : 1
} finally {
  prometheus.kill('SIGKILL')
  await worker.stop()
  await devnet.stop()
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}

/** Writes the configuration of ops/ with the service's host and short intervals; returns its path. */
function configuration(host: string): string {
  const config = parse(readFileSync(join(rules, 'prometheus.yml'), 'utf8'))
  Object.assign(config.global, { scrape_interval: '5s', scrape_timeout: '5s', evaluation_interval: '5s' })
  config.rule_files = [join(rules, 'alerts.yml')]
  const [job] = config.scrape_configs
  job.scheme = 'http'
  job.static_configs = [{ targets: [host] }]
  writeFileSync(join(folder, 'operator-secret'), OPERATOR_SECRET)
  const file = join(folder, 'prometheus.yml')
  writeFileSync(file, stringify(config))
  return file
}

async function api<Reply>(path: string): Promise<Reply> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
  return (await response.json()) as Reply
}

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS
  while (Date.now() < deadline) {
    if (await isTrue().catch(() => false)) return
    await sleep(500)
  }
  throw new Error(`Prometheus did not have ${what} within ${TIMEOUT_MS / 1000} s`)
}
