import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../devnet/anvil.ts'
import { asRealChain, unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import type { StartService } from '../faults/service.ts'
import { type GethChain, startGethChain } from './geth-chain.ts'
import { tradeHonestly } from './run.ts'

type Run = {
  /** The nodes in RPC_URL; the one that makes the blocks by default. */
  nodes?: 'follower first' | 'nginx'
  /** How many blocks the follower is behind. */
  lag?: number
  /** What happens to the chain while agents trade, every twelve seconds. */
  disturb?: (chain: GethChain) => Promise<void>
}

/** What agents meet behind go-ethereum, each on a chain of its own. */
const RUNS: Record<string, Run> = {
  'one node': {},
  'rewinds by 3 blocks': { disturb: chain => chain.rewind(3) },
  'side chains of a peer, 3 blocks deep': { disturb: chain => chain.reorg(3) },
  'a lagging peer first': { nodes: 'follower first', lag: 1 },
  'a frozen peer first': { nodes: 'follower first', disturb: async chain => chain.setLag(undefined) },
  'nginx in front of both, one lags': { nodes: 'nginx', lag: 1 },
}
const CHAIN_ID = 421_614
const AGENTS = 3
const DISTURB_MS = 12_000
/**
 * A rewind takes back what agents were told of: reads are true again once the lanes have sent it again and it is mined.
 */
const SETTLE_MS = 8_000
/** A run that takes longer has got stuck: its service is stopped. */
const MAX_RUN_MS = 180_000

/** The binaries to run, words of the runs to play (all by default), and how the agents live. */
type Options = { geth: string; nginx: string | undefined; only: string[]; seed: number; rounds: number }

/** Plays the runs and prints their table. Returns whether no event was lost or doubled, and nothing false was told. */
export async function runOnGeth(start: StartService, options: Options): Promise<boolean> {
  const { nginx, only } = options
  const rows: Record<string, string | number>[] = []
  for (const [name, run] of Object.entries(RUNS)) {
    if (only.length > 0 && !only.some(words => name.includes(words))) continue
    if (run.nodes === 'nginx' && nginx === undefined) continue
    const report = await play(start, run, options).catch(error => console.error(`${name}: ${error.message}`))
    if (report === undefined) {
      rows.push({ run: name, 'at once': 'stuck', intents: 0 })
      continue
    }
    const { attempts, succeeded, intents, missing, doubled, falsehoods, refusals, traffic } = report
    console.log(name, JSON.stringify({ refusals, falsehoods, missing, doubled }))
    rows.push({
      run: name,
      'at once': `${succeeded} of ${attempts}`,
      intents,
      missing: missing.length,
      doubled: doubled.length,
      false: falsehoods.length,
      seconds: Math.round(traffic.seconds),
    })
  }
  console.table(rows)
  return rows.every(
    ({ intents, missing, doubled, false: falsehoods }) => intents !== 0 && !missing && !doubled && !falsehoods,
  )
}

async function play(
  start: StartService,
  { nodes, lag = 0, disturb }: Run,
  { geth, nginx = '', seed, rounds }: Options,
) {
  const chain = await startGethChain(geth, CHAIN_ID)
  const { maker, follower } = chain.urls
  const proxy = nodes === 'nginx' ? await startNginx(nginx, [maker, follower]) : undefined
  const service = await start({
    ...workerVars(chain.deployment),
    ...unlimitedGas,
    RPC_URL: proxy?.url ?? (nodes === 'follower first' ? `${follower},${maker}` : maker),
    ...asRealChain,
    X402_ENABLED: 'false',
    // A block takes a second, and the follower shows it a block later: longer than a submission waits at Arbitrum's
    // pace.
    SUBMISSION_TIMEOUT_MS: '12000',
  })
  chain.setLag(lag)
  const timer = setInterval(() => void disturb?.(chain).catch(error => console.error(error.message)), DISTURB_MS)
  const limit = setTimeout(() => void service.stop(), MAX_RUN_MS)
  const began = Date.now()
  const during = async (work: () => Promise<unknown>) => {
    await work()
    clearInterval(timer)
    return { calls: {}, bytes: 0, blocks: 0, seconds: (Date.now() - began) / 1_000 }
  }
  try {
    return await tradeHonestly(
      { ...chain, url: service.url },
      { seed, rounds, agents: AGENTS, settleMs: disturb ? SETTLE_MS : 0, during },
    )
  } finally {
    clearInterval(timer)
    clearTimeout(limit)
    await service.stop()
    proxy?.stop()
    await chain.stop()
  }
}

/** Starts nginx, which sends each request to the next node. geth refuses the name of an upstream as the host. */
async function startNginx(binary: string, nodes: string[]): Promise<{ url: string; stop(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-nginx-'))
  const port = await freePort()
  const servers = nodes.map(node => `server ${new URL(node).host};`).join(' ')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${folder};`)
    .join(' ')
  const config = join(folder, 'nginx.conf')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit; events {}
http { access_log off; ${paths} upstream nodes { ${servers} }
server { listen 127.0.0.1:${port}; client_max_body_size 8m; location / { proxy_pass http://nodes; proxy_set_header Host $host; } } }`,
  )
  const child = spawn(binary, ['-p', folder, '-c', config], { stdio: 'inherit' })
  const stop = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  process.once('exit', stop)
  return { url: `http://127.0.0.1:${port}`, stop }
}
