import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Address, type Hex, keccak256, numberToHex, parseEther, parseEventLogs, stringToBytes } from 'viem'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { type Devnet, startDevnet } from '../devnet/index.ts'
import { workerVars } from '../devnet/worker-vars.ts'
import { childOf, cpuSeconds } from './child-report.ts'
import type { Hit, Shot } from './load-client.ts'
import { type Loader, quantile } from './load-process.ts'
import { startPeer } from './peers/express/start.ts'
import { agentsFor, registerAgents, type SignedOpen, signOpens } from './population.ts'
import { startWorkerd } from './workerd.ts'

/** How a load is put on: closed loop of so many clients, or so many intents a second, whatever is answered. */
export type Shape = { intents: number; warmUp?: number } & ({ clients: number } | { perSecond: number })

/** What one load came to. CPU in milliseconds per intent; `busy` in cores, of all processes of the measurement. */
export type Measured = {
  answered: number
  wrongIds: number
  perSecond: number
  p50: number
  p99: number
  cpu: { subject: number; anvil: number; client: number }
  busy: number
}

const EXECUTOR_ROLE = keccak256(stringToBytes('EXECUTOR_ROLE'))
const RAW_GAS = 600_000n
const FEE = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n }

/** A chain of its own with what every subject needs; they are measured on it one after another. */
export async function startGround(loader: Loader) {
  const devnet = await startDevnet()
  devnet.marketMaker.pause() // its trades are not what is measured
  const anvil = childOf(process.pid, 'anvil')
  const vars = { ...workerVars(devnet.deployment), X402_ENABLED: 'false', KEEPER_ENABLED: 'false' }
  const storage = mkdtempSync(join(tmpdir(), 'agent-trading-service-bench-'))

  const signed = async (count: number) => signOpens(devnet, await registerAgents(devnet, agentsFor(count)), count)

  /** Puts a load on and holds every answer against the events of the chain. */
  async function measure(
    { origin, pid }: { origin: string; pid?: number },
    shape: Shape,
    shotsOf: (opens: SignedOpen[]) => Shot[] | Promise<Shot[]>,
  ): Promise<Measured> {
    const { intents, warmUp = 0 } = shape
    const shots = await shotsOf(await signed(intents + warmUp))
    const pace = 'clients' in shape ? { clients: shape.clients } : { clients: 0, perSecond: shape.perSecond }
    const from = await devnet.client.getBlockNumber()
    if (warmUp > 0) await loader.fire({ origin, shots: shots.slice(0, warmUp), clients: pace.clients || 32 })
    const used = () => ({ subject: pid === undefined ? 0 : cpuSeconds(pid), anvil: cpuSeconds(anvil) })
    const before = used()
    const report = await loader.fire({ origin, shots: shots.slice(warmUp), ...pace })
    const after = used()
    const right = report.hits.filter(isDone)
    const seconds = {
      subject: after.subject - before.subject,
      anvil: after.anvil - before.anvil,
      client: report.cpuSeconds,
    }
    const each = (value: number) => (1_000 * value) / intents
    return {
      answered: right.length,
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
    /** The calls themselves, signed by the executor beforehand, straight to the node. */
    raw: async (shape: Shape) =>
      measure({ origin: devnet.rpcUrl }, shape, async opens => {
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
    /** The relay that most would write. */
    async peer<T>(use: (measure: (shape: Shape) => Promise<Measured>) => Promise<T>): Promise<T> {
      const peer = await startPeer({ vars })
      try {
        return await use(shape => measure({ origin: peer.url, pid: peer.pid }, shape, posted))
      } finally {
        await peer.stop()
      }
    },
    /** The service in a workerd of its own, with so many executor keys. */
    async service<T>(keys: number, use: (measure: (shape: Shape) => Promise<Measured>) => Promise<T>): Promise<T> {
      const more = await moreExecutors(devnet, keys - 1)
      const executors = [devnet.deployment.accounts.executor.privateKey, ...more].join(',')
      const persistTo = mkdtempSync(join(storage, 'service-'))
      const workerd = await startWorkerd({ vars: { ...vars, EXECUTOR_PRIVATE_KEY: executors }, persistTo })
      try {
        return await use(shape => measure({ origin: workerd.url, pid: workerd.pid }, shape, posted))
      } finally {
        await workerd.stop()
      }
    },
    async stop() {
      await devnet.stop()
      rmSync(storage, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type Ground = Awaited<ReturnType<typeof startGround>>

export const posted = (opens: readonly SignedOpen[]): Shot[] =>
  opens.map(({ agentId, body }) => ({
    method: 'POST',
    path: `/agents/${agentId}/trade-intents`,
    body: JSON.stringify(body),
    order: agentId,
  }))

/** A node answers 200 to a refusal too. */
const isDone = ({ status, body }: Hit) => status === 201 || (status === 200 && body.includes('"status":"0x1"'))

/** How many answers name another position or agent than the event of their transaction. */
async function wrongIds({ client, deployment }: Devnet, fromBlock: bigint, hits: readonly Hit[]): Promise<number> {
  const logs = await client.getLogs({ address: deployment.contracts.TradeRouter as Address, fromBlock })
  const events = parseEventLogs({ abi: tradeRouterAbi, eventName: 'PositionOpenedFromIntent', logs })
  const opened = new Map(events.map(({ transactionHash, args }) => [transactionHash, args]))
  return hits.filter(({ body }) => {
    const { agentId, positionId, transactionHash } = JSON.parse(body)
    const event = opened.get(transactionHash)
    return `${event?.positionId}` !== positionId || `${event?.agentId}` !== agentId
  }).length
}

/** Fresh keys that may execute, each with gas money. */
async function moreExecutors(devnet: Devnet, count: number): Promise<Hex[]> {
  const keys = Array.from({ length: count }, generatePrivateKey)
  const { accounts, contracts } = devnet.deployment
  for (const key of keys) {
    const address = privateKeyToAddress(key)
    await devnet.client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
      method: 'anvil_setBalance',
      params: [address, numberToHex(parseEther('100'))],
    })
    await devnet.send(accounts.admin, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'grantRole',
      args: [EXECUTOR_ROLE, address],
    })
  }
  return keys
}
