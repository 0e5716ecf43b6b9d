import { setTimeout as sleep } from 'node:timers/promises'
import { privateKeyToAccount } from 'viem/accounts'
import {
  AgentTradingError,
  type Client,
  createClient,
  type Submission,
  UnknownOutcomeError,
} from '../../packages/client/src/index.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'
import { type AgentWorld, inAnHour, keyOf, rememberBody, SYMBOLS } from './clients.ts'
import { type ClientResponse, isVerdict, type SignedIntent } from './violations.ts'

const KINDS: [segment: string, kind: SignedIntent['kind']][] = [
  ['trade-intents', 'open'],
  ['add-intents', 'add'],
  ['reduce-intents', 'reduce'],
  ['exit-ladder-intents', 'ladder'],
  ['register', 'register'],
  ['/cancel', 'cancel'],
  ['/orders', 'order'],
]
/** How often an agent tries to reach one goal. */
const MAX_TRIES = 6
/** The share of goals that place an order, which waits for a price that never comes, or cancel it. */
const ORDER_SHARE = 0.3

/**
 * Simulates an agent on the TypeScript client. It signs again for a goal only after an error that says nothing was
 * done.
 */
export async function runClientAgent(
  world: AgentWorld,
  { seed, index, intents }: { seed: number; index: number; intents: number },
): Promise<void> {
  const random = randomOf('client agent', seed, index)
  const account = privateKeyToAccount(keyOf(random))
  let goal = `${seed}-${index}`
  const posted = new Map<string, SignedIntent>()
  const client = createClient({
    baseUrl: world.url(),
    account,
    requestTimeoutMs: 8_000,
    retryBudgetMs: 10_000,
    onSubmission(submission) {
      const intent = intentOf(submission, goal)
      const json = JSON.stringify(submission.body)
      posted.set(json, intent)
      rememberBody(intent, { method: 'POST', path: submission.path, json })
      world.onIntent(intent)
    },
    fetch: (url, init) => recordResponse(world, posted.get(`${init.body}`), fetch(url, init)),
  })

  const registered = await reach(world, client, () =>
    client.register({
      vault: world.vault,
      name: goal,
      metadataURI: 'https://agents.example/fault.json',
      deadline: inAnHour(),
    }),
  ).finally(world.onRegistered)
  const agentId = registered?.agentId
  if (agentId === undefined) return
  const agent: SimulatedAgent = { ...client.agent(agentId), positionId: undefined, orderId: undefined }
  for (let step = 1; step < intents && !world.signal.aborted; step++) {
    goal = `${index}/${step} ${agentId}`
    const next = nextGoal(agent, random)
    const receipt = await reach(world, client, () => next.send(inAnHour()))
    if (next.isOfOrders) agent.orderId = receipt?.state === 'open' ? receipt.orderId : undefined
    else if (receipt === undefined || next.closes) agent.positionId = undefined
    else agent.positionId = receipt.positionId ?? agent.positionId
  }
}

type Receipt = { agentId?: string; positionId?: string; orderId?: string; state?: string }
type Goal = { send(deadline: bigint): Promise<Receipt>; closes?: boolean; isOfOrders?: boolean }
type SimulatedAgent = ReturnType<Client['agent']> & { positionId: string | undefined; orderId: string | undefined }

function nextGoal(agent: SimulatedAgent, random: Random): Goal {
  const usdcAmount = `${random.integer(5, 40)}.${random.integer(10, 99)}`
  const exits = [{ triggerBps: -random.integer(500, 3_000), exitBps: 10_000 }]
  const { positionId, orderId, orders } = agent
  const symbol = random.pick(SYMBOLS)
  if (random.chance(ORDER_SHARE)) {
    if (orderId !== undefined) return { send: deadline => orders.cancel({ orderId, deadline }), isOfOrders: true }
    const order = { type: 'limit', symbol, usdcAmount, exits, price: '1' } as const
    return { send: deadline => orders.place({ ...order, deadline }), isOfOrders: true }
  }
  if (positionId === undefined) {
    return { send: deadline => agent.open({ symbol, usdcAmount, exits, deadline }) }
  }
  const kind = random.pick(['add', 'add', 'ladder', 'ladder', 'ladder', 'reduce', 'close'] as const)
  if (kind === 'add') return { send: deadline => agent.add({ positionId, usdcAmount, deadline }) }
  if (kind === 'ladder') return { send: deadline => agent.setLadder({ positionId, exits, deadline }) }
  if (kind === 'close') return { send: deadline => agent.close({ positionId, deadline }), closes: true }
  const exitBps = random.integer(500, 5_000)
  return { send: deadline => agent.reduce({ positionId, exitBps, deadline }) }
}

/** Tries until the goal is reached. An unknown outcome is resumed, never signed again. Undefined if it gave up. */
async function reach<R extends Receipt>(
  world: AgentWorld,
  client: Client,
  send: () => Promise<R>,
): Promise<R | undefined> {
  for (let attempt = 1; attempt <= MAX_TRIES && !world.signal.aborted; attempt++) {
    try {
      return await settle(world, client, send)
    } catch (error) {
      if (!(error instanceof AgentTradingError)) throw error
      await sleep(200 * attempt)
    }
  }
  return undefined
}

async function settle<R>(world: AgentWorld, client: Client, send: () => Promise<R>): Promise<R> {
  for (let next = send; ; ) {
    try {
      return await next()
    } catch (error) {
      if (!(error instanceof UnknownOutcomeError) || world.signal.aborted) throw error
      next = () => client.resume<R & Record<string, unknown>>(error.submission)
    }
  }
}

export const intentOf = ({ digest, path }: Pick<Submission, 'digest' | 'path'>, goal: string): SignedIntent => ({
  digest,
  kind: KINDS.find(([segment]) => path.includes(segment))?.[1] ?? 'open',
  goal,
  hasTwin: false,
  hasActiveOwner: false,
  responses: [],
})

/** Records the response to a post, as the harness compares it with the chain, and passes it on. */
export async function recordResponse(
  { onResponse, onVerdict }: AgentWorld,
  intent: SignedIntent | undefined,
  pending: Promise<Response>,
): Promise<Response> {
  if (intent === undefined) return pending
  let recorded: ClientResponse = { status: 'no response' }
  try {
    const response = await pending
    const text = await response.clone().text()
    onResponse(text)
    recorded = { status: response.status, body: JSON.parse(text) }
    return response
  } finally {
    intent.responses.push(recorded)
    if (isVerdict(recorded)) onVerdict()
  }
}
