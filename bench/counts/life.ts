import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Devnet } from '../../devnet/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import type { Workerd } from '../workerd.ts'
import type { ObjectCounts } from './counted-platform.ts'
import type { Measured, StepName } from './measured.ts'
import { between, type Counts, type Meter, mapCounts } from './meter.ts'

// biome-ignore lint/suspicious/noExplicitAny: API responses, from which each step reads the fields it needs
type Json = any
type Agent = { agentId: string; account: PrivateKeyAccount; positionId: string }

/** How often each step runs; counts are means. */
const AGENTS = 10
/** The most that one address may have. */
const STREAMS = 200
const STREAM_SECONDS = 60
const CRONS = 10
/** Longer than transactions keep the index at the head. */
const WATCHED_MS = 75_000
const POLL_MS = 250
/** An index that nothing waits for reads settled blocks, twice a minute. */
const MAX_SETTLE_MS = 180_000

/** Runs a fixed scenario with a few agents and counts each step. */
export async function liveLife({
  devnet,
  worker,
  meter,
  idleSeconds,
  sleep,
}: {
  devnet: Devnet
  worker: Workerd
  meter: Meter
  idleSeconds: number
  sleep: (ms: number) => Promise<unknown>
}): Promise<Omit<Measured, 'machine'>> {
  const { accounts, contracts, vaults } = devnet.deployment
  const terms = {
    account: privateKeyToAccount(accounts.payer.privateKey),
    chainId: devnet.chainId,
    asset: contracts.USDC as `0x${string}`,
    maxAmount: 1_000_000_000n,
  }
  const paying = createPayer(terms, request => fetch(request))

  async function request(path: string, body?: Json): Promise<Json> {
    const init = body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    const response = await paying.fetch(new Request(`${worker.url}${path}`, init))
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${text}`)
    return JSON.parse(text)
  }

  const sign = (account: PrivateKeyAccount, { types: { EIP712Domain: _, ...types }, ...rest }: Json) =>
    account.signTypedData({ ...rest, types })

  async function register(): Promise<Agent> {
    const account = privateKeyToAccount(generatePrivateKey())
    const query = new URLSearchParams({
      signer: account.address,
      vault: vaults.genesis as string,
      name: 'counted agent',
      metadataURI: 'https://agents.example/counted.json',
    })
    const { body, typedData } = await request(`/agents/register/quote?${query}`)
    const { agentId } = await request('/agents/register', { ...body, signature: await sign(account, typedData) })
    return { agentId, account, positionId: '' }
  }

  async function submit({ agentId, account }: Agent, kind: string, input: Record<string, string>): Promise<Json> {
    const path = `/agents/${agentId}/${kind}`
    const { body, typedData } = await request(`${path}/quote?${new URLSearchParams(input)}`)
    return request(path, { ...body, signature: await sign(account, typedData) })
  }

  /** Waits until the index has reached the head. */
  async function settle() {
    const block = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
    const isSettled = async () => {
      const reached = (await (await fetch(`${worker.url}/bench/indexed`)).json()) as Json
      return reached.block >= block
    }
    for (const start = Date.now(); !(await isSettled()); await sleep(POLL_MS))
      if (Date.now() - start > MAX_SETTLE_MS) throw new Error('The index does not settle.')
  }
  type Run = { counted: Counts; seconds: number }
  async function count(run: () => Promise<unknown>): Promise<Run> {
    const [before, start] = [await meter.read(), Date.now()]
    await run()
    const seconds = (Date.now() - start) / 1_000
    return { counted: between(before, await meter.read()), seconds }
  }
  const waiting = () => count(() => sleep(idleSeconds * 1_000))
  const perSecond = ({ counted, seconds }: Run) => mapCounts(counted, value => value / seconds)
  const steps: Partial<Record<StepName, Counts>> = {}
  /** Sets the counts of a step that ran several times, less what happens in a second without it. */
  function setStep(name: StepName, times: number, { counted, seconds }: Run, without: Counts) {
    steps[name] = mapCounts(counted, (value, key) => Math.max(0, (value - without[key] * seconds) / times))
    console.log(name, JSON.stringify(mapCounts(steps[name], round)))
  }
  const forEachAgent = (run: (agent: Agent) => Promise<unknown>) =>
    count(async () => {
      for (const agent of agents) await run(agent)
      await settle()
    })

  await request('/health/ready')
  await register() // warms up the caches; the only agent during the idle hour
  await settle()
  await sleep(WATCHED_MS)
  const objectsBefore = await meter.readObjects()
  const idling = await waiting()
  const idle = perSecond(idling)
  const objectsAfter = await meter.readObjects()
  const perHour = (value: number) => round((value / idling.seconds) * 3_600)
  const idleObjects = Object.fromEntries(
    Object.entries(objectsAfter).map(([name, after]) => [name, hourly(after, objectsBefore[name], perHour)]),
  )

  const agents: Agent[] = []
  const registering = await count(async () => {
    for (let index = 0; index < AGENTS; index++) agents.push(await register())
    await settle()
  })
  setStep('register', AGENTS, registering, idle)
  const opening = await forEachAgent(async agent => {
    const input = { symbol: 'NVDA', usdcAmount: '100', exits: LADDER }
    agent.positionId = (await submit(agent, 'trade-intents', input)).positionId
  })
  await sleep(WATCHED_MS)
  const holding = perSecond(await waiting())
  setStep('open', AGENTS, opening, holding)
  const updating = await forEachAgent(agent =>
    submit(agent, 'exit-ladder-intents', { positionId: agent.positionId, exits: OTHER_LADDER }),
  )
  setStep('ladder', AGENTS, updating, holding)
  const closing = await forEachAgent(agent =>
    submit(agent, 'reduce-intents', { positionId: agent.positionId, exitBps: '10000' }),
  )
  setStep('close', AGENTS, closing, idle)
  const streaming = await count(async () => {
    const abort = new AbortController()
    for (let stream = 0; stream < STREAMS; stream++) {
      const { agentId } = agents[stream % AGENTS] as Agent
      await fetch(`${worker.url}/agents/${agentId}/events`, { signal: abort.signal })
    }
    await sleep(STREAM_SECONDS * 1_000)
    abort.abort()
  })
  setStep('stream', STREAMS, streaming, idle)
  const firing = await count(async () => {
    for (let run = 0; run < CRONS; run++) await request('/bench/cron')
  })
  setStep('cron', CRONS, firing, idle)

  return {
    steps: Object.fromEntries(
      Object.entries(steps).map(([name, counts]) => [name, mapCounts(counts, round)]),
    ) as Record<StepName, Counts>,
    idleHour: mapCounts(idle, value => round(value * 3_600)),
    holdingHour: mapCounts(holding, (value, name) => round(Math.max(0, value - idle[name]) * 3_600)),
    idleObjects,
  }
}

const LADDER = '-800:10000'
const OTHER_LADDER = '-700:10000'

const round = (value: number) => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)

const hourly = (after: ObjectCounts, before: ObjectCounts | undefined, perHour: (value: number) => number) =>
  Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, perHour(value - (before?.[name as keyof ObjectCounts] ?? 0))]),
  ) as ObjectCounts
