import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, type Hex, keccak256, numberToHex, parseEther, parseEventLogs, stringToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { type Devnet, startDevnet } from '../devnet/index.ts'
import { unlimitedGas, workerVars } from '../devnet/worker-vars.ts'
import { childOf, cpuSeconds } from './child-process.ts'
import type { LoadRequest, LoadResult } from './load-child.ts'
import { type LoadGenerator, quantile } from './load-generator.ts'
import { startPeer } from './peer.ts'
import { agentsFor, registerAgents, type SignedOpen, signOpens } from './signed-intents.ts'
import { startWorkerd, type Workerd, type WorkerdOptions } from './workerd.ts'

/** A closed loop of `clients`, or a fixed rate of intents that does not wait for responses. */
export type LoadProfile = { intents: number; warmUp?: number } & ({ clients: number } | { perSecond: number })

/**
 * The result of one load. CPU is in milliseconds per intent; `busy` counts the cores that all measured processes used.
 */
export type Measurement = {
  succeeded: number
  wrongIds: number
  perSecond: number
  p50: number
  p99: number
  cpu: { subject: number; anvil: number; client: number }
  busy: number
}

const EXECUTOR_ROLE = keccak256(stringToBytes('EXECUTOR_ROLE'))
/** How often the newest block is read while waiting for one. */
const BLOCK_POLL_MS = 50
const RAW_GAS = 600_000n
const FEE = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n }

/**
 * Starts a chain with everything that the measured services need. The services run on it one after another. `blockMs`
 * makes it produce blocks at that pace, with transactions or without.
 */
export async function startTestbed(loadGenerator: LoadGenerator, blockMs?: number) {
  const devnet = await startDevnet({ blockMs, emptyBlockMs: blockMs })
  devnet.marketMaker.pause() // its trades are not part of the measurement
  const anvil = childOf(process.pid, 'anvil')
  const vars = {
    ...workerVars(devnet.deployment),
    ...unlimitedGas,
    X402_ENABLED: 'false',
    KEEPER_ENABLED: 'false',
  }
  const storage = mkdtempSync(join(tmpdir(), 'agent-trading-service-bench-'))

  const signed = async (count: number) => signOpens(devnet, await registerAgents(devnet, agentsFor(count)), count)

  /** Runs a load and compares every response with the events on chain. */
  async function measure(
    { origin, pid }: { origin: string; pid?: number },
    profile: LoadProfile,
    requestsOf: (opens: SignedOpen[]) => LoadRequest[] | Promise<LoadRequest[]>,
  ): Promise<Measurement> {
    const { intents, warmUp = 0 } = profile
    const requests = await requestsOf(await signed(intents + warmUp))
    const pace = 'clients' in profile ? { clients: profile.clients } : { clients: 0, perSecond: profile.perSecond }
    const from = await devnet.client.getBlockNumber()
    if (warmUp > 0)
      await loadGenerator.run({ origin, requests: requests.slice(0, warmUp), clients: pace.clients || 32 })
    const used = () => ({ subject: pid === undefined ? 0 : cpuSeconds(pid), anvil: cpuSeconds(anvil) })
    const before = used()
    const report = await loadGenerator.run({ origin, requests: requests.slice(warmUp), ...pace })
    const after = used()
    const right = report.results.filter(isDone)
    const seconds = {
      subject: after.subject - before.subject,
      anvil: after.anvil - before.anvil,
      client: report.cpuSeconds,
    }
    const each = (value: number) => (1_000 * value) / intents
    return {
      succeeded: right.length,
      wrongIds: pid === undefined ? 0 : await wrongIds(devnet, from, right),
      perSecond: right.length / report.seconds,
      p50: quantile(right, 0.5),
      p99: quantile(right, 0.99),
      cpu: { subject: each(seconds.subject), anvil: each(seconds.anvil), client: each(seconds.client) },
      busy: (seconds.subject + seconds.anvil + seconds.client) / report.seconds,
    }
  }

  return {
    devnet,
    storage,
    vars,
    signed,
    /** Measures the same calls, presigned by the executor and sent directly to the node. */
    raw: async (profile: LoadProfile) =>
      measure({ origin: devnet.rpcUrl }, profile, async opens => {
        const executor = privateKeyToAccount(devnet.deployment.accounts.executor.privateKey)
        const nonce = await devnet.client.getTransactionCount({ address: executor.address })
        const sign = async ({ call }: SignedOpen, index: number) => {
          const transaction = { chainId: devnet.chainId, nonce: nonce + index, gas: RAW_GAS, ...FEE, ...call }
          const raw = await executor.signTransaction({ type: 'eip1559', ...transaction })
          const body = { jsonrpc: '2.0', id: index, method: 'eth_sendRawTransactionSync', params: [raw] }
          return { method: 'POST', path: '/', body: JSON.stringify(body) } as const
        }
        return Promise.all(opens.map(sign))
      }),
    /** Measures the baseline relay. */
    async peer<T>(use: (measure: (profile: LoadProfile) => Promise<Measurement>) => Promise<T>): Promise<T> {
      const peer = await startPeer({ vars })
      try {
        return await use(profile => measure({ origin: peer.url, pid: peer.pid }, profile, posted))
      } finally {
        await peer.stop()
        await dropPending(devnet)
      }
    },
    /** Measures the service in its own workerd, with the given number of executor keys. */
    async service<T>(
      keys: number,
      use: (measure: (profile: LoadProfile) => Promise<Measurement>, workerd: Workerd) => Promise<T>,
      options: Pick<WorkerdOptions, 'bundle' | 'inspectorPort'> = {},
    ): Promise<T> {
      const more = await moreExecutors(devnet, keys - 1)
      const executors = [devnet.deployment.accounts.executor.privateKey, ...more].join(',')
      const persistTo = mkdtempSync(join(storage, 'service-'))
      const workerd = await startWorkerd({ vars: { ...vars, EXECUTOR_PRIVATE_KEY: executors }, persistTo, ...options })
      try {
        return await use(profile => measure({ origin: workerd.url, pid: workerd.pid }, profile, posted), workerd)
      } finally {
        await workerd.stop()
        await dropPending(devnet)
      }
    },
    async stop() {
      await devnet.stop()
      rmSync(storage, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type Testbed = Awaited<ReturnType<typeof startTestbed>>

export const posted = (opens: readonly SignedOpen[]): LoadRequest[] =>
  opens.map(({ agentId, body }) => ({
    method: 'POST',
    path: `/agents/${agentId}/trade-intents`,
    body: JSON.stringify(body),
    order: agentId,
  }))

/** A node returns status 200 for errors too. */
const isDone = ({ status, body }: LoadResult) => status === 201 || (status === 200 && body.includes('"status":"0x1"'))

/**
 * Removes what the measured service left in the node's pool. The next one has another journal and would take it for
 * foreign use of its key.
 */
async function dropPending({ client }: Devnet): Promise<void> {
  await client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
    method: 'anvil_dropAllTransactions',
    params: [],
  })
  const block = await client.getBlockNumber({ cacheTime: 0 })
  while ((await client.getBlockNumber({ cacheTime: 0 })) <= block + 1n) await sleep(BLOCK_POLL_MS)
}

/** Counts responses whose position or agent differs from the event of their transaction. */
async function wrongIds(
  { client, deployment }: Devnet,
  fromBlock: bigint,
  results: readonly LoadResult[],
): Promise<number> {
  const logs = await client.getLogs({ address: deployment.contracts.TradeRouter as Address, fromBlock })
  const events = parseEventLogs({ abi: tradeRouterAbi, eventName: 'PositionOpenedFromIntent', logs })
  const opened = new Map(events.map(({ transactionHash, args }) => [transactionHash, args]))
  return results.filter(({ body }) => {
    const { agentId, positionId, transactionHash } = JSON.parse(body)
    const event = opened.get(transactionHash)
    return `${event?.positionId}` !== positionId || `${event?.agentId}` !== agentId
  }).length
}

/** Returns new keys with the executor role and a balance for gas. */
async function moreExecutors(devnet: Devnet, count: number): Promise<Hex[]> {
  const keys = Array.from({ length: count }, generatePrivateKey)
  const { contracts } = devnet.deployment
  for (const key of keys) {
    const address = privateKeyToAddress(key)
    await devnet.client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
      method: 'anvil_setBalance',
      params: [address, numberToHex(parseEther('100'))],
    })
    await devnet.administer({
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'grantRole',
      args: [EXECUTOR_ROLE, address],
    })
  }
  return keys
}
