import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { Address, Hex, TypedDataDefinition } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { vi } from 'vitest'
import { startWorkerd, type Workerd } from '../../bench/workerd.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { freePort } from '../../devnet/anvil.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { asRealChain, workerVars } from '../../devnet/worker-vars.ts'
import { readLanes } from '../../packages/cli/src/operator/journal.ts'
import type { Body } from './body.ts'
import { parseOpenMetrics, type Sample } from './open-metrics.ts'

export const OPERATOR_SECRET = 'operator-of-the-exercises'
const asOperator = { Authorization: `Bearer ${OPERATOR_SECRET}` }
/** For what needs a few blocks or alarms. Only the timeout of the test ends it: a busy machine may be slow. */
export const SOON = { timeout: 240_000, interval: 100 }

const ATS = join(import.meta.dirname, '../../packages/cli/bin/ats.js')
const runFile = promisify(execFile)

export type Response = { status: number; body: Body }
export type RecoverableService = Awaited<ReturnType<typeof startRecoverableService>>

/** Returns an agent's next nonce at the router, which counts its intents. */
export const executedIntentsOf = ({ client, deployment }: Devnet, agentId: string): Promise<bigint> =>
  client.readContract({
    address: deployment.contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'nonces',
    args: [BigInt(agentId)],
  })

/** Starts the service on plain workerd, with a storage folder of which parts can be deleted while it is stopped. */
export async function startRecoverableService(deployment: Deployment, variables: Record<string, string> = {}) {
  const storage = mkdtempSync(join(tmpdir(), 'recovery-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const defaults = {
    ...workerVars({ ...deployment, baseUrl: url }),
    ...asRealChain,
    START_BLOCK: '0',
    X402_ENABLED: 'false',
    OPERATOR_SECRET,
    PRICE_REFRESH_INTERVAL_SECONDS: '0',
    SUBMISSION_TIMEOUT_MS: '15000',
    ...variables,
  }
  let workerd: Workerd | undefined
  let earlierLogs = ''

  /**
   * Starts it with changed variables, or another bundle, on the storage that is there. The first request wakes keeper
   * and indexer.
   */
  async function start(changes: Record<string, string> = {}, bundle?: string): Promise<void> {
    workerd = await startWorkerd({ vars: { ...defaults, ...changes }, persistTo: storage, port, bundle })
    await get('/health')
  }

  async function end(how: 'stop' | 'kill9'): Promise<void> {
    const ended = workerd
    workerd = undefined
    await ended?.[how]()
    earlierLogs += ended?.logs() ?? ''
  }

  async function request(path: string, init?: RequestInit): Promise<Response> {
    const response = await fetch(url + path, init)
    return { status: response.status, body: await response.json() }
  }
  const get = async (path: string): Promise<Body> => (await request(path)).body
  const send = (method: string, path: string, body: Body, headers: Record<string, string> = {}) =>
    request(path, {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const post = (path: string, body: Body) => send('POST', path, body)

  /** Registers an agent with a new key; `pay` posts the body and pays the fee, if there is one. */
  async function register(vault = 'genesis', pay: (request: Request) => Promise<globalThis.Response> = fetch) {
    const account = privateKeyToAccount(generatePrivateKey())
    const sign = async (quote: Body): Promise<Body> => {
      if (!quote.typedData) throw new Error(`There is nothing to sign: ${JSON.stringify(quote)}`)
      const {
        body,
        typedData: { types, ...rest },
      } = quote
      const { EIP712Domain: _, ...own } = types
      return { ...body, signature: await account.signTypedData({ ...rest, types: own } as TypedDataDefinition) }
    }
    const facts = { vault: `${deployment.vaults[vault]}`, name: 'agent', metadataURI: 'https://agents.example/a' }
    const query = new URLSearchParams({ signer: account.address, ...facts })
    const registration = await sign(await get(`/agents/register/quote?${query}`))
    const headers = { 'Content-Type': 'application/json' }
    const posted = new Request(`${url}/agents/register`, {
      method: 'POST',
      headers,
      body: JSON.stringify(registration),
    })
    const response = await pay(posted)
    const registered: Response = { status: response.status, body: await response.json() }
    if (registered.status !== 201) throw new Error(`The agent is not registered: ${JSON.stringify(registered.body)}`)
    const path = `/agents/${registered.body.agentId}`
    return {
      agentId: registered.body.agentId as string,
      account,
      registerAgain: () => post('/agents/register', registration),
      /** Quotes and signs a purchase, without posting it. */
      async signTrade(input: Record<string, string> = {}): Promise<SignedIntent> {
        const terms = new URLSearchParams({ symbol: 'NVDA', usdcAmount: '25', ...input })
        const quote = await get(`${path}/trade-intents/quote?${terms}`)
        return { path: `${path}/trade-intents`, digest: quote.digest, body: await sign(quote) }
      },
      /** Quotes and signs an order, without posting it. */
      async signOrder(input: Record<string, string>): Promise<SignedIntent> {
        const quote = await get(`${path}/orders/quote?${new URLSearchParams(input)}`)
        return { path: `${path}/orders`, digest: quote.digest, body: await sign(quote) }
      },
      /** Creates a webhook for all events. */
      async createWebhook(target: string): Promise<Response> {
        const quote = await get(`${path}/webhooks/quote?url=${encodeURIComponent(target)}`)
        return post(`${path}/webhooks`, await sign(quote))
      },
      async webhooks(): Promise<Body[]> {
        return (await post(`${path}/webhooks/list`, await sign(await get(`${path}/webhooks/list/quote`)))).body.webhooks
      },
      trades: async (): Promise<Body[]> => (await get(`${path}/trades`)).trades,
      events: (lastEventId?: string) =>
        fetch(`${url}${path}/events`, lastEventId === undefined ? {} : { headers: { 'Last-Event-ID': lastEventId } }),
    }
  }

  const ats = (...args: string[]) => runFile(process.execPath, [ATS, 'admin', ...args, '--storage', storage])

  await start()
  return {
    url,
    start,
    stop: () => end('stop'),
    kill: () => end('kill9'),
    runCron: async () => workerd?.runCron(),
    request,
    get,
    post,
    register,
    send: ({ path, body }: SignedIntent) => post(path, body),
    intent: (digest: Hex) => request(`/intents/${digest}`),
    asOperator: (method: string, path: string, body: Body) => send(method, path, body, asOperator),
    readiness: () => request('/health/ready', { headers: asOperator }),

    /** Waits until the sum of a metric's samples is as expected: a scrape may be five seconds old. */
    untilMetric: (name: string, labels: Record<string, string>, isExpected: (value: number) => boolean) =>
      vi.waitFor(async () => {
        const response = await fetch(`${url}/metrics`, { headers: asOperator })
        const samples = [...parseOpenMetrics(await response.text()).values()].flatMap(family => family.samples)
        const value = sumOf(samples, name, labels)
        if (value === undefined || !isExpected(value)) throw new Error(`${name} is ${value}.`)
      }, SOON),

    /**
     * Returns the log lines with an event, oldest first, also of earlier processes. A line may come after the response.
     */
    logged: (event: string): Body[] =>
      `${earlierLogs}${workerd?.logs() ?? ''}`
        .split('\n')
        .flatMap(line => /^\s*(\{.*\})\s*$/.exec(line)?.[1] ?? [])
        .map(line => JSON.parse(line) as Body)
        .filter(line => line.event === event),

    /** Waits until the index has every block up to now. */
    untilIndexed: (block: bigint) =>
      vi.waitFor(async () => {
        const { history } = (await request('/health/ready')).body.details ?? (await get('/health/ready'))
        if (history?.cursor === null || history === undefined || BigInt(history.cursor) < block)
          throw new Error(`The index is at ${history?.cursor}, not yet at ${block}.`)
      }, SOON),

    /** Writes a backup into a folder, as an operator does. */
    backUp: (to: string) => ats('backup', to),
    /** Writes a backup back, which needs an empty machine. */
    restore: (from: string) => ats('restore', from),
    /** Deletes everything. */
    loseMachine: () => rmSync(storage, { recursive: true }),

    /** Deletes the database. */
    loseDatabase: () => rmSync(join(storage, 'd1'), { recursive: true }),
    /** Deletes every Durable Object, with its alarm. */
    loseObjects: () => rmSync(join(storage, 'do'), { recursive: true }),
    /** Deletes the object of one lane, whose file `ats admin journal` names. */
    async loseLane(account: Address): Promise<void> {
      const { lanes } = await readLanes(storage)
      const lane = lanes.find(({ lane }) => lane === account)
      if (lane === undefined) throw new Error(`No lane of ${account} is in ${storage}.`)
      for (const end of ['', '-wal', '-shm']) rmSync(`${lane.file}${end}`, { force: true })
    },

    async remove() {
      await end('kill9')
      rmSync(storage, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type SignedIntent = { path: string; digest: Hex; body: Body }

function sumOf(samples: readonly Sample[], name: string, labels: Record<string, string>): number | undefined {
  const found = samples.filter(
    sample => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

/** Starts a receiver of webhooks that accepts everything. */
export async function startReceiver() {
  const received: { id: string; body: Body }[] = []
  const server = createServer(async (request, response) => {
    received.push({ id: `${request.headers['webhook-id']}`, body: JSON.parse(await text(request)) })
    response.writeHead(204).end()
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    received,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type ServiceWithReceiver = Awaited<ReturnType<typeof startServiceWithReceiver>>

/** Starts a chain with a block every 150 ms, a service of it, and a receiver that its webhooks may name. */
export async function startServiceWithReceiver() {
  const devnet = await startDevnet({ blockMs: 150 })
  const service = await startRecoverableService(devnet.deployment, {
    DEVELOPMENT_CHAIN: 'true', // allows receivers on this machine
    WEBHOOK_LOCAL_TARGETS: 'true',
  })
  const receiver = await startReceiver()
  return {
    devnet,
    service,
    receiver,
    executor: devnet.deployment.accounts.executor.address,
    async stop() {
      receiver.stop()
      await service.remove()
      await devnet.stop()
    },
  }
}
