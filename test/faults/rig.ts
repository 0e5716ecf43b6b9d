import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Address, Hex } from 'viem'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { domainAbi, toDomain } from '../../src/protocol/typed-data.ts'
import { type Domains, readAccount, readExecutions } from './chain-record.ts'
import { postAgain, runAgent, type World } from './clients.ts'
import { enrich, happen } from './events.ts'
import { bodyOf, type Intent, isRefusal, isSuccess, judge, type Violation } from './oracle.ts'
import type { Plan } from './plan.ts'
import { type RpcProxy, startProxy } from './proxy.ts'
import type { Service, StartService } from './service.ts'

export type Result = {
  seed: number
  intents: number
  executed: number
  refused: number
  /** Requests that a client had to repeat. */
  repeated: number
  /** How often each fate befell a request to the node, and each code was answered. */
  faults: Record<string, number>
  codes: Record<string, number>
  events: string[]
  seconds: number
  violations: Violation[]
}

export type Rig = {
  run(plan: Plan): Promise<Result>
  stop(): Promise<void>
}

const BLOCK_MS = 150
const MOST_URLS = 2
const INCLUSION_TIMEOUT_MS = 3_000
/** A seed that has no verdicts after this long will not get them. */
const PATIENCE_MS = 120_000
const REST_MS = 40_000
/** A reorganisation takes three blocks at most. */
const SETTLED_MS = 5 * BLOCK_MS

/** A chain and a way to it that the seeds share, one after the other; each gets a service with storage of its own. */
export async function startRig(start: StartService): Promise<Rig> {
  const devnet = await startDevnet({ mineEveryMs: BLOCK_MS })
  devnet.marketMaker.pause() // its trades would be lost in reorganisations, and the amounts here move no pool
  const canary = `canary${randomBytes(8).toString('hex')}`
  const proxy = await startProxy(devnet.rpcUrl, { urls: MOST_URLS, secret: canary })
  const domains = await domainsOf(devnet)
  return {
    run: plan => runSeed({ devnet, proxy, domains, start, canary }, plan),
    async stop() {
      await proxy.stop()
      await devnet.stop()
    },
  }
}

type Ground = { devnet: Devnet; proxy: RpcProxy; domains: Domains; start: StartService; canary: string }

async function runSeed({ devnet, proxy, domains, start, canary }: Ground, plan: Plan): Promise<Result> {
  const { client, deployment } = devnet
  const { executor, relayer } = deployment.accounts
  const vars = {
    ...workerVars(deployment),
    RPC_URL: proxy.urls.slice(0, plan.urls).join(','),
    INCLUSION_TIMEOUT_MS: `${INCLUSION_TIMEOUT_MS}`,
    KEEPER_ENABLED: 'false',
    X402_ENABLED: 'false',
  }
  const began = Date.now()
  const accounts = [executor.address, relayer.address]
  const [from, ...since] = await Promise.all([
    client.getBlockNumber(),
    ...accounts.map(address => client.getTransactionCount({ address })),
  ])
  const service = await start(vars)
  proxy.counts.clear()
  const foreign = new Set<Hex>()
  const intents: Intent[] = []
  const texts: string[] = []
  const progress = createProgress()
  const registrations = createProgress()
  const world: World = {
    ...{ url: () => service.url, client, domains, router: deployment.contracts.TradeRouter },
    ...{ vault: deployment.vaults.genesis as Address, tokens: deployment.tokens },
    onIntent: intent => intents.push(intent),
    onAnswer: text => texts.push(text),
    onVerdict: progress.advance,
    onRegistered: registrations.advance,
    signal: AbortSignal.timeout(PATIENCE_MS),
  }
  try {
    proxy.follow(plan)
    const registered = registrations.until(plan.agents).then(() => sleep(SETTLED_MS))
    const scene = { client, setMining: devnet.setMining, service, executor, foreign, settled: registered }
    const each = Math.ceil(plan.intents / plan.agents)
    const agents = Array.from({ length: plan.agents }, (_, index) =>
      runAgent(world, { seed: plan.seed, index, intents: each }),
    )
    const events = (async () => {
      for (const event of plan.events) {
        await progress.until(event.after)
        await happen(event, scene)
      }
    })()
    await Promise.all(agents)
    progress.end()
    await events

    proxy.calm()
    await devnet.setMining(true)
    for (const address of accounts) await enrich(client, address)
    const isOpen = ({ told }: Intent) => !told.some(answer => isSuccess(answer) || isRefusal(answer))
    const patient = { ...world, signal: AbortSignal.timeout(REST_MS) }
    await Promise.all(intents.filter(isOpen).map(intent => postAgain(patient, intent)))
    await rest(devnet, service, { accounts, intents })
  } finally {
    proxy.calm()
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
  const told = intents.flatMap(intent => intent.told)
  return {
    seed: plan.seed,
    intents: intents.length,
    executed: executions.filter(({ succeeded, digest }) => succeeded && digest !== undefined).length,
    refused: intents.filter(intent => intent.told.some(isRefusal)).length,
    repeated: told.length - intents.length,
    faults: Object.fromEntries(proxy.counts),
    codes: tally(told.map(answer => bodyOf(answer).code ?? `${answer.status}`)),
    events: plan.events.map(({ is }) => is),
    seconds: (Date.now() - began) / 1000,
    violations: judge({
      ...{ intents, executions, accounts: states, secrets },
      texts: [...texts, service.logs()],
      lostBlocks: plan.events.some(({ is }) => is === 'reorg'),
    }),
  }
}

/**
 * Waits until nothing of the service's accounts is under way any more, and what a reorganisation took from clients is back;
 * what does not end is the oracle's to tell.
 */
async function rest(
  { client }: Devnet,
  { url }: Service,
  { accounts, intents }: { accounts: readonly Address[]; intents: readonly Intent[] },
): Promise<void> {
  const promised = intents.flatMap(({ told }) =>
    told.filter(isSuccess).map(answer => bodyOf(answer).transactionHash ?? '0x'),
  )
  const isMined = (hash: Hex) =>
    client.getTransactionReceipt({ hash }).then(
      () => true,
      () => false,
    )
  for (const until = Date.now() + REST_MS; Date.now() < until; await sleep(BLOCK_MS)) {
    const states = await Promise.all(accounts.map(address => readAccount(client, { address, since: 0, mined: 0 })))
    const isQuiet = states.every(({ nonce, pendingNonce, inPool }) => nonce === pendingNonce && inPool === 0)
    if (!isQuiet || (await pendingOf(url)) > 0) continue
    if ((await Promise.all(promised.map(isMined))).every(Boolean)) return
  }
}

type Lanes = Record<'executor' | 'relayer', { lanes: { pending: number }[] }>

/** How many transactions the service waits for; none where it does not say. */
async function pendingOf(url: string): Promise<number> {
  const response = await fetch(`${url}/health/ready`)
  if (response.status === 404) return 0
  const { executor, relayer, details } = (await response.json()) as Lanes & { details?: Lanes }
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
    /** Resolves once so many verdicts are there, or there will be no more. */
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
  return { registry: await read(contracts.AgentRegistry), router: await read(contracts.TradeRouter) }
}
