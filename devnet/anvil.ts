import { fork, spawn } from 'node:child_process'
import { accessSync, chmodSync, constants } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from 'viem'
import { MNEMONIC } from './accounts.ts'
import { type Watch, watchNode } from './watch-node.ts'

export type Anvil = {
  rpcUrl: string
  port: number
  chainId: number
  /** Resolves when the node has exited: with an error if it was not stopped by `stop`. */
  exited: Promise<Error | undefined>
  /** Pauses and resumes mining. Once a pause has resolved, no block is being mined, and the chain can reorg. */
  setMining(mining: boolean): Promise<void>
  /** Sets the block time from now on; blocks without transactions are made too. */
  setBlockTime(blockMs: number): Promise<void>
  stop(): Promise<void>
}

export type AnvilOptions = {
  port?: number | undefined
  chainId?: number | undefined
  accounts?: number | undefined
  /** How long a transaction waits for its block. This process mines: anvil's own timer cannot be stopped reliably. */
  blockMs?: number | undefined
  /** The time between two blocks without a transaction; a second by default. */
  emptyBlockMs?: number | undefined
  /** The time of the first block in Unix seconds; now by default. */
  startsAt?: number | undefined
  /** Whether it mines from the start; default true. */
  mines?: boolean | undefined
  /** The URL of a node whose chain this one continues. */
  after?: string | undefined
  /**
   * Of a chain that continues another one: whether somebody reads it between its blocks, and so needs the states of the
   * last ones; default true.
   */
  isRead?: boolean | undefined
}

const DEFAULT_BLOCK_MS = 250
/** Each block without a transaction costs the node and everybody who follows it some CPU. */
const DEFAULT_EMPTY_BLOCK_MS = 1_000
/**
 * For how long the states of past blocks are kept, which a busy machine may read late. Each is a copy of the whole
 * state, of about a megabyte once the chain has the 8,191 block hashes of EIP-2935. With a timer of its own, anvil
 * 1.7.1 keeps 1,500 blocks instead.
 */
const HISTORY_MS = 60_000
/**
 * Of a chain that continues another one and makes blocks on demand: how many states and how many blocks with logs are
 * kept, so that a year of them takes no more memory than a month.
 */
const KEPT_STATES = 16
export const KEPT_BLOCKS = 2_048

/** Ends a start that hangs; anvil exits if it fails. */
const START_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 3_000

/**
 * Starts anvil on the given port, or on a free one, and resolves once it responds. It exits with this process, even
 * after SIGKILL.
 */
export async function startAnvil({
  port,
  chainId = 31337,
  accounts = 10,
  blockMs = DEFAULT_BLOCK_MS,
  emptyBlockMs = DEFAULT_EMPTY_BLOCK_MS,
  startsAt,
  mines = true,
  after,
  isRead = true,
}: AnvilOptions = {}): Promise<Anvil> {
  const pace = { blockMs, emptyBlockMs }
  // `npm test -- --block-time 100` runs tests on chains of that pace, with blocks that have no transactions.
  const forcedMs = Number(process.env.TEST_BLOCK_TIME_MS || 0)
  if (forcedMs > 0) Object.assign(pace, { blockMs: forcedMs, emptyBlockMs: forcedMs })
  const listenOn = port ?? (await freePort())
  if (port !== undefined) await assertFree(port)
  const rpcUrl = `http://127.0.0.1:${listenOn}`
  // `npm run test:edr` names a script that takes anvil's place.
  const replacement = process.env.EMBEDDED_NODE
  const child = spawn(
    replacement === undefined ? anvilBinary() : process.execPath,
    [
      ...(replacement === undefined ? [] : [replacement]),
      ...anvilArguments({ port: listenOn, chainId, accounts, blockMs: pace.blockMs, after, isRead }),
      ...(startsAt === undefined ? [] : ['--timestamp', `${startsAt}`]),
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true, // its own process group: Ctrl-C reaches this process, which stops anvil in order
      // A chain with one client at a time spends a tenth of its time on handing calls from thread to thread.
      ...(after !== undefined && { env: { ...process.env, TOKIO_WORKER_THREADS: '1' } }),
    },
  )
  const watchdog = fork(join(import.meta.dirname, 'watchdog.ts'), [`${child.pid}`], {
    detached: true,
    execArgv: [],
  })

  let stopping = false
  let problem = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problem = (problem + text).slice(-4_000)
  })
  const exited = new Promise<Error | undefined>(resolve => {
    child.on('error', error => resolve(error))
    child.on('exit', (code, signal) => {
      watchdog.kill('SIGKILL')
      resolve(
        stopping
          ? undefined
          : new Error(`anvil exited unexpectedly (${signal ?? `exit code ${code}`}): ${problem.trim()}`),
      )
    })
  })
  const miner = createMiner(rpcUrl, pace)
  const stop = async () => {
    stopping = true
    await miner.set(false)
    child.kill('SIGTERM')
    const inTime = await Promise.race([exited.then(() => true), sleep(STOP_TIMEOUT_MS, false, { ref: false })])
    if (!inTime) child.kill('SIGKILL')
    await exited
  }

  const failure = await Promise.race([exited, waitUntilReady(rpcUrl, chainId)])
  if (failure) {
    await stop()
    throw failure
  }
  await miner.set(mines)
  async function setBlockTime(ms: number) {
    Object.assign(pace, { blockMs: ms, emptyBlockMs: ms })
    await miner.set(miner.isOn())
  }
  return { rpcUrl, port: listenOn, chainId, exited, setMining: miner.set, setBlockTime, stop }
}

const anvilArguments = ({
  port,
  chainId,
  accounts,
  blockMs,
  after,
  isRead,
}: Record<'port' | 'chainId' | 'accounts' | 'blockMs', number> & Pick<AnvilOptions, 'after' | 'isRead'>): string[] => [
  ...`--host 127.0.0.1 --port ${port} --chain-id ${chainId} --accounts ${accounts}`.split(' '),
  ...`--balance 10000 --gas-limit 60000000 --silent --no-mining --order fifo`.split(' '),
  // A read of the latest block needs more than one state: anvil resolves its number first, and two blocks can follow.
  ...['--prune-history', ...keptStates({ blockMs, after, isRead })],
  ...['--mnemonic', MNEMONIC],
  ...(after === undefined
    ? []
    : `--fork-url ${after} --fork-block-number 0 --no-storage-caching --transaction-block-keeper ${KEPT_BLOCKS}`.split(
        ' ',
      )),
]

/** Returns how many states are kept; without a number, none is copied. */
function keptStates({ blockMs, after, isRead }: { blockMs: number } & Pick<AnvilOptions, 'after' | 'isRead'>) {
  if (after === undefined) return [`${Math.ceil(HISTORY_MS / blockMs)}`]
  return isRead ? [`${KEPT_STATES}`] : []
}

/** Mines at its pace while it is on. Once `set(false)` has resolved, no block is being mined. */
function createMiner(rpcUrl: string, pace: { blockMs: number; emptyBlockMs: number }) {
  let timer: NodeJS.Timeout | undefined
  let mining: Promise<unknown> = Promise.resolve()
  let isMining = false
  let minedAt = 0
  let pool: Watch | undefined
  /**
   * Whether a transaction may wait for its block. A block may leave some behind, so the node is asked until there is
   * none.
   */
  let mayWait = true
  const isDue = async () => {
    if (Date.now() - minedAt >= pace.emptyBlockMs) return true
    mayWait = pool?.hasNews() || mayWait
    if (mayWait) mayWait = await hasTransactions(rpcUrl)
    return mayWait
  }
  const mineWhenDue = async () => {
    if (!(await isDue())) return
    await rpc(rpcUrl, 'evm_mine', [])
    minedAt = Date.now()
  }
  const tick = () => {
    if (isMining) return
    isMining = true
    mining = mineWhenDue()
      .catch(() => {}) // the node has exited, which `exited` reports
      .finally(() => {
        isMining = false
      })
  }
  return {
    isOn: () => timer !== undefined,
    async set(isOn: boolean) {
      clearInterval(timer)
      if (isOn) pool ??= watchNode(rpcUrl, 'newPendingTransactions')
      timer = isOn ? setInterval(tick, pace.blockMs).unref() : undefined
      await mining
    },
  }
}

/** Whether a transaction waits for its block; true on a node that does not say. */
async function hasTransactions(rpcUrl: string): Promise<boolean> {
  const status = await rpc<{ pending: Hex }>(rpcUrl, 'txpool_status', []).catch(() => undefined)
  return status === undefined || Number(status.pending) > 0
}

/** Returns the path of the anvil binary that npm installed for this platform; throws with a remedy if there is none. */
export function anvilBinary(): string {
  const architecture = { x64: 'amd64', arm64: 'arm64' }[process.arch as string]
  const name = `@foundry-rs/anvil-${process.platform}-${architecture}`
  let path: string
  try {
    path = createRequire(import.meta.url).resolve(`${name}/bin/anvil`)
  } catch (cause) {
    throw new Error(
      `The embedded chain needs the npm package ${name}, which is not installed. ` +
        'Run `npm ci` without --omit=optional on Linux or macOS, x64 or arm64.',
      { cause },
    )
  }
  try {
    accessSync(path, constants.X_OK)
  } catch {
    chmodSync(path, 0o755) // some npm caches drop the executable bit
  }
  return path
}

/** Below the ports that systems assign by themselves, and above the last one that browsers refuse. */
const FIRST_PORT = 11_000
const PORTS_PER_PROCESS = 32
const SHARES = 680
/** In the global object, because vitest loads this module several times in one process. */
const shared = globalThis as typeof globalThis & { portsAskedFor?: number }

/**
 * Returns a TCP port that nothing listens on. Each process has ports of its own, so that no other takes the port before
 * the caller's server listens there.
 */
export async function freePort(): Promise<number> {
  const first = FIRST_PORT + (process.pid % SHARES) * PORTS_PER_PROCESS
  for (let tried = 0; tried < PORTS_PER_PROCESS; tried++) {
    shared.portsAskedFor = (shared.portsAskedFor ?? 0) + 1
    const port = first + (shared.portsAskedFor % PORTS_PER_PROCESS)
    const server = await listen(port).catch(() => undefined)
    if (server === undefined) continue
    await new Promise(resolve => server.close(resolve))
    return port
  }
  throw new Error(`The ports ${first} to ${first + PORTS_PER_PROCESS - 1} are in use.`)
}

async function assertFree(port: number): Promise<void> {
  const server = await listen(port).catch(cause => {
    throw new Error(`Port ${port} is in use: stop the process that listens there, or set CHAIN_PORT.`, { cause })
  })
  await new Promise(resolve => server.close(resolve))
}

function listen(port: number) {
  const server = createServer()
  return new Promise<typeof server>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server))
  })
}

async function waitUntilReady(rpcUrl: string, chainId: number): Promise<Error | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS
  while (Date.now() < deadline) {
    const id = await rpc(rpcUrl, 'eth_chainId', []).catch(() => undefined)
    if (id !== undefined) {
      if (Number(id) === chainId) return undefined
      return new Error(`Another node listens on ${rpcUrl}, with chain id ${Number(id)}.`)
    }
    await sleep(10)
  }
  return new Error(`anvil did not respond on ${rpcUrl} within ${START_TIMEOUT_MS / 1000} s.`)
}

export type RpcCall = [method: string, params: readonly unknown[]]
type RpcReply<Result> = { id: number; result: Result; error?: { message: string } }

/** Sends one request to a node and returns its result. Throws if the node refuses it. */
export async function rpc<Result = string>(url: string, method: string, params: readonly unknown[]): Promise<Result> {
  const [result] = await rpcBatch<Result>(url, [[method, params]])
  return result as Result
}

/**
 * Sends requests to a node, which executes them in their order, and returns their results. Throws if it refuses one.
 */
export async function rpcBatch<Result>(url: string, calls: readonly RpcCall[]): Promise<Result[]> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rpcRequests(calls)),
  })
  return rpcResults(calls, (await response.json()) as RpcReply<Result> | RpcReply<Result>[])
}

/** Returns calls as JSON-RPC: a single one alone, several as a batch. */
export function rpcRequests(calls: readonly RpcCall[]): object {
  const requests = calls.map(([method, params], id) => ({ jsonrpc: '2.0', id, method, params }))
  return requests.length === 1 && requests[0] !== undefined ? requests[0] : requests
}

/** Returns the results of calls in their order. Throws if one was refused. */
export function rpcResults<Result>(
  calls: readonly RpcCall[],
  replies: RpcReply<Result> | readonly RpcReply<Result>[],
): Result[] {
  const results: Result[] = []
  for (const { id, result, error } of [replies].flat()) {
    if (error) throw new Error(`${calls[id]?.[0]} failed: ${error.message}`)
    results[id] = result
  }
  return results
}
