import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import type { Address, Hex } from 'viem'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { asRealChain, unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { type Domains, readAccount, readExecutions } from './chain-record.ts'
import { type AgentWorld, postAgain, runAgent } from './clients.ts'
import { openMarket } from './orders.ts'
import { openPayments } from './payments.ts'
import type { FaultPlan } from './plan.ts'
import { type RpcProxy, startProxy } from './rpc-proxy.ts'
import type { Service, StartService } from './service.ts'
import { refill, triggerEvent } from './trigger-event.ts'
import {
  bodyOf,
  findViolations,
  type IntentStatus,
  isRefusal,
  isSuccess,
  isVerdict,
  type OrderRun,
  type SignedIntent,
  type Violation,
} from './violations.ts'

export type SeedResult = {
  seed: number
  intents: number
  executed: number
  /** Intents with a response that nothing was executed. */
  rejected: number
  /** Requests that clients had to repeat. */
  repeated: number
  /** How often each fault was injected, and each error code was returned. */
  faults: Record<string, number>
  codes: Record<string, number>
  events: string[]
  seconds: number
  violations: Violation[]
}

export type Rig = {
  run(plan: FaultPlan): Promise<SeedResult>
  stop(): Promise<void>
}

const BLOCK_MS = 150
const MAX_URLS = 2
const INCLUSION_TIMEOUT_MS = 3_000
/** How long clients post without a verdict. */
const RUN_TIMEOUT_MS = 300_000
/** How long the service has to finish after the faults end. */
const IDLE_TIMEOUT_MS = 120_000
/** More than the three blocks of the deepest reorg. */
const REORG_SAFE_BLOCKS = 5n

/** Starts a chain and a proxy that seeds use one after the other. Each seed gets a service with new storage. */
export async function startRig(start: StartService, agent: typeof runAgent = runAgent): Promise<Rig> {
  const devnet = await startDevnet({ blockMs: BLOCK_MS })
  devnet.marketMaker.pause() // a reorg would remove its trades, and the amounts here hardly move a pool
  const canary = `canary${randomBytes(8).toString('hex')}`
  const proxy = await startProxy(devnet.rpcUrl, { urls: MAX_URLS, secret: canary })
  const domains = await domainsOf(devnet)
  return {
    run: plan => runSeed({ devnet, proxy, domains, start, agent, canary }, plan),
    async stop() {
      await proxy.stop()
      await devnet.stop()
    },
  }
}

type RigParts = {
  devnet: Devnet
  proxy: RpcProxy
  domains: Domains
  start: StartService
  agent: typeof runAgent
  canary: string
}

async function runSeed(
  { devnet, proxy, domains, start, agent, canary }: RigParts,
  plan: FaultPlan,
): Promise<SeedResult> {
  const { client, deployment } = devnet
  const { executor, relayer, keeper } = deployment.accounts
  const vars = {
    ...workerVars(deployment),
    ...unlimitedGas,
    RPC_URL: proxy.urls.slice(0, plan.urls).join(','),
    INCLUSION_TIMEOUT_MS: `${INCLUSION_TIMEOUT_MS}`,
    ...asRealChain,
    KEEPER_ENABLED: `${plan.hasOrders}`,
    X402_ENABLED: `${plan.isPaid}`,
    X402_VALIDITY_SECONDS: '3600',
  }
  const began = Date.now()
  const accounts = [executor, relayer, ...(plan.hasOrders ? [keeper] : [])].map(({ address }) => address)
  const [from, ...since] = await Promise.all([
    client.getBlockNumber(),
    ...accounts.map(address => client.getTransactionCount({ address })),
  ])
  const payments = plan.isPaid ? await openPayments(devnet, plan) : undefined
  const service = await start(vars)
  const market = plan.hasOrders ? await openMarket(devnet, plan) : undefined
  const streamed = await market?.startEventLog(service.url)
  proxy.counts.clear()
  const foreign = new Set<Hex>()
  const intents: SignedIntent[] = []
  const texts: string[] = []
  const progress = createProgress()
  const registrations = createProgress()
  const world: AgentWorld = {
    url: () => service.url,
    client,
    domains,
    router: deployment.contracts.TradeRouter,
    ownerControls: deployment.contracts.OwnerControls as Address,
    vault: deployment.vaults.genesis as Address,
    tokens: deployment.tokens,
    payments,
    market,
    onIntent: intent => intents.push(intent),
    onResponse: text => texts.push(text),
    onVerdict: progress.advance,
    onRegistered: registrations.advance,
    signal: AbortSignal.timeout(RUN_TIMEOUT_MS),
  }
  const lostBlocks = plan.events.some(({ kind }) => kind === 'reorg')
  let statuses: ReadonlyMap<Hex, IntentStatus> = new Map()
  let orders: OrderRun | undefined
  try {
    proxy.startFaults(plan)
    const registered = registrations.until(plan.agents).then(() => waitForBlocks(client, REORG_SAFE_BLOCKS))
    const lane = plan.hasOrders ? keeper.address : executor.address
    const targets = { client, setMining: devnet.setMining, service, executor, lane, foreign, settled: registered }
    const each = Math.ceil(plan.intents / plan.agents)
    const agents = Array.from({ length: plan.agents }, (_, index) =>
      agent(world, { seed: plan.seed, index, intents: each }),
    )
    const events = (async () => {
      for (const event of plan.events) {
        await progress.until(event.after)
        await triggerEvent(event, targets)
      }
    })()
    await Promise.all(agents)
    progress.end()
    await events

    proxy.stopFaults()
    await devnet.setMining(true)
    for (const address of accounts) await refill(client, address)
    const lacksVerdict = ({ responses }: SignedIntent) => !responses.some(isVerdict)
    const faultless = { ...world, signal: AbortSignal.timeout(IDLE_TIMEOUT_MS) }
    await Promise.all(intents.filter(lacksVerdict).map(intent => postAgain(faultless, intent)))
    const left = (await market?.settle()) ?? 0
    await waitUntilIdle(devnet, service, { accounts, intents })
    await devnet.setMining(false)
    orders = await market?.record(service.url, { left, streamed })
    await devnet.setMining(true)
    if (lostBlocks) statuses = await readStatuses(service.url, intents)
  } finally {
    await market?.close()
    proxy.stopFaults()
    await service.stop()
  }

  const { executions, mined } = await readExecutions(client, { from, accounts, domains, foreign })
  const states = await Promise.all(
    accounts.map((address, index) =>
      readAccount(client, { address, since: since[index] ?? 0, mined: mined.get(address) ?? 0 }),
    ),
  )
  const keys = Object.entries(vars).filter(([name]) => name.endsWith('PRIVATE_KEY'))
  const secrets = [canary, ...keys.map(([, key]) => key.replace('0x', ''))]
  const responses = intents.flatMap(intent => intent.responses)
  return {
    seed: plan.seed,
    intents: intents.length,
    executed: executions.filter(({ succeeded, digest }) => succeeded && digest !== undefined).length,
    rejected: intents.filter(intent => intent.responses.some(isRefusal)).length,
    repeated: responses.length - intents.length,
    faults: Object.fromEntries(proxy.counts),
    codes: tally(responses.map(response => bodyOf(response).code ?? `${response.status}`)),
    events: plan.events.map(({ kind }) => kind),
    seconds: (Date.now() - began) / 1000,
    violations: findViolations({
      intents,
      executions,
      accounts: states,
      charges: await payments?.charges(),
      orders,
      secrets,
      texts: [...texts, service.logs()],
      lostBlocks,
      hasForeignUse: foreign.size > 0,
      statuses,
    }),
  }
}

/**
 * Waits until the service's accounts have no pending transactions and every transaction that a client was told of is
 * mined. Returns after a timeout too: findViolations reports what is left.
 */
async function waitUntilIdle(
  { client }: Devnet,
  { url }: Service,
  { accounts, intents }: { accounts: readonly Address[]; intents: readonly SignedIntent[] },
): Promise<void> {
  const confirmed = intents.flatMap(({ responses }) =>
    responses.filter(isSuccess).map(response => bodyOf(response).transactionHash ?? '0x'),
  )
  const isMined = (hash: Hex) =>
    client.getTransactionReceipt({ hash }).then(
      () => true,
      () => false,
    )
  for (const until = Date.now() + IDLE_TIMEOUT_MS; Date.now() < until; await sleep(BLOCK_MS)) {
    const states = await Promise.all(accounts.map(address => readAccount(client, { address, since: 0, mined: 0 })))
    const isIdle = states.every(({ nonce, pendingNonce, inPool }) => nonce === pendingNonce && inPool === 0)
    if (!isIdle || (await pendingOf(url)) > 0) continue
    if ((await Promise.all(confirmed.map(isMined))).every(Boolean)) return
  }
}

/** Waits until the chain has this many more blocks, however long it stands still. */
async function waitForBlocks(client: Devnet['client'], count: bigint): Promise<void> {
  const height = () => client.getBlockNumber({ cacheTime: 0 })
  for (const enough = (await height()) + count; (await height()) < enough; ) await sleep(BLOCK_MS)
}

/** Returns what the service says about every intent whose outcome it told. */
async function readStatuses(url: string, intents: readonly SignedIntent[]): Promise<Map<Hex, IntentStatus>> {
  const statuses = new Map<Hex, IntentStatus>()
  for (const { digest, responses } of intents) {
    if (!responses.some(isVerdict)) continue
    const response = await fetch(`${url}/intents/${digest}`)
    if (response.ok) statuses.set(digest, (await response.json()) as IntentStatus)
  }
  return statuses
}

type LanesReport = Record<'executor' | 'relayer', { lanes: { pending: number }[] }>

/** Returns the service's number of pending transactions; 0 if it does not report it. */
async function pendingOf(url: string): Promise<number> {
  const response = await fetch(`${url}/health/ready`)
  if (response.status === 404) return 0
  const { executor, relayer, details } = (await response.json()) as LanesReport & { details?: LanesReport }
  const lanes = [executor ?? details?.executor, relayer ?? details?.relayer].flatMap(group => group?.lanes ?? [])
  return lanes.reduce((sum, { pending }) => sum + pending, 0)
}

const tally = (names: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))

function createProgress() {
  let count = 0
  const waiting: { at: number; resolve: () => void }[] = []
  const wake = () => {
    for (const { at, resolve } of waiting) if (count >= at) resolve()
  }
  return {
    advance() {
      count++
      wake()
    },
    /** Resolves at the given count, or when the run ends. */
    until: (at: number) => new Promise<void>(resolve => (count >= at ? resolve() : waiting.push({ at, resolve }))),
    end() {
      count = Number.POSITIVE_INFINITY
      wake()
    },
  }
}

async function domainsOf({ client, deployment: { contracts } }: Devnet): Promise<Domains> {
  const read = async (address: Address) =>
    toDomain(await client.readContract({ address, abi: domainAbi, functionName: 'eip712Domain' }))
  return {
    registry: await read(contracts.AgentRegistry),
    router: await read(contracts.TradeRouter),
    ownerControls: await read(contracts.OwnerControls as Address),
    orderBook: await read(contracts.OrderBook as Address),
  }
}
