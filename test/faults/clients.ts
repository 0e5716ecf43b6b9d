import { setTimeout as sleep } from 'node:timers/promises'
import { TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { orderMessage } from '@agent-trading-service/protocol/order-typed-data'
import {
  digestOf,
  hashExits,
  type Message,
  type PrimaryType,
  signingTypes,
} from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, type PublicClient, parseUnits } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'
import type { Domains } from './chain-record.ts'
import { draftOrder } from './orders.ts'
import { type OwnerGoal, ownerDraftOf } from './owner-messages.ts'
import type { Payment, Payments } from './payments.ts'
import { bodyOf, type ClientResponse, isSuccess, isVerdict, type SignedIntent } from './violations.ts'

/** What the simulated agents share. */
export type AgentWorld = {
  /** Returns the current URL of the service. */
  url(): string
  client: PublicClient
  domains: Domains
  router: Address
  ownerControls: Address
  vault: Address
  tokens: Record<string, Address>
  /** Undefined if registrations are free. */
  payments: Payments | undefined
  /** The prices at the start; undefined if agents place no orders. */
  market: { startOf(symbol: string): bigint } | undefined
  /** Called for every body that is signed. */
  onIntent(intent: SignedIntent): void
  /** Called with the text of every response. */
  onResponse(text: string): void
  onVerdict(): void
  onRegistered(): void
  signal: AbortSignal
}

type IntentDraft = {
  method?: 'POST' | 'PUT'
  path: string
  kind: SignedIntent['kind']
  primaryType: PrimaryType
  message: Message
  body: object
  exits?: ExitRule[]
}
type OpenPosition = { id: string; symbol: string }

export const SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA']
const REQUEST_TIMEOUT_MS = 8_000
const MAX_BACKOFF_MS = 400
const HOUR_SECONDS = 3_600
/** How many bodies a client signs for one goal before it gives up. */
const MAX_TRIES = 6
const INVALID_SHARE = 0.12
const TWIN_SHARE = 0.08
/** The share of agents whose owner acts, and of the goals during which it does. */
const ACTIVE_OWNER_SHARE = 0.4
const OWNER_SHARE = 0.25

/** Simulates an agent with a careful client: it registers, then executes one intent after the other. */
export async function runAgent(
  world: AgentWorld,
  { seed, index, intents }: { seed: number; index: number; intents: number },
) {
  const random = randomOf('agent', seed, index)
  const account = privateKeyToAccount(keyOf(random))
  const hasActiveOwner = random.chance(ACTIVE_OWNER_SHARE)
  const signing = { account, hasActiveOwner }
  const payments = (await world.payments?.of(index)) ?? []
  const agentId = await registerPaying(world, signing, { name: `${seed}-${index}`, payments }).finally(
    world.onRegistered,
  )
  if (agentId === undefined) return
  const agent: SimulatedAgent = {
    id: BigInt(agentId),
    owner: account,
    ...signing,
    position: undefined,
    orderIds: [],
    random,
  }
  for (let step = 1; step < intents && !world.signal.aborted; step++) {
    const name = `${index}/${step}`
    const ownerGoal = hasActiveOwner && random.chance(OWNER_SHARE) ? nextOwnerGoal(random) : undefined
    await Promise.all([
      reachGoal(world, agent, name),
      ownerGoal && actAsOwner(world, agent, ownerGoal, `${name}/owner`),
    ])
    if (ownerGoal && ownerGoal.kind !== 'signer') await actAsOwner(world, agent, { kind: 'trade' }, `${name}/trade`)
  }
}

type OwnerDecision = { kind: 'signer'; key: Hex } | { kind: 'reduceOnly' | 'flatten' | 'trade' }

function nextOwnerGoal(random: Random): OwnerDecision {
  const kind = random.pick(['signer', 'reduceOnly', 'flatten'] as const)
  return kind === 'signer' ? { kind, key: keyOf(random) } : { kind }
}

/** Signs a message of the owner and posts it until there is a verdict. A new signer signs from then on. */
async function actAsOwner(world: AgentWorld, agent: SimulatedAgent, decision: OwnerDecision, name: string) {
  const next = decision.kind === 'signer' ? privateKeyToAccount(decision.key) : undefined
  const goal: OwnerGoal =
    decision.kind === 'signer'
      ? { kind: 'signer', signer: privateKeyToAccount(decision.key).address }
      : { kind: decision.kind }
  for (let attempt = 1; attempt <= MAX_TRIES && !world.signal.aborted; attempt++) {
    const nonce = await ownerNonceOf(world, agent.owner.address)
    const draft = ownerDraftOf(goal, agent.id, { nonce, deadline: inAnHour() })
    const signed = await sign(world, { account: agent.owner, hasActiveOwner: true }, draft, `${name} ${agent.id}`)
    if (isSuccess(await post(world, signed))) {
      if (next) agent.account = next
      return
    }
    await sleep(200 * attempt)
  }
}

/** Registers with the first payment, and with each further one if that is refused. */
async function registerPaying(
  world: AgentWorld,
  signing: Signing,
  { name, payments: [payment, ...further] }: { name: string; payments: readonly Payment[] },
): Promise<string | undefined> {
  const [agentId] = await Promise.all([register(world, signing, name, payment?.header), payment?.turn()])
  return agentId === undefined && further.length > 0
    ? registerPaying(world, signing, { name, payments: further })
    : agentId
}

async function register(
  world: AgentWorld,
  signing: Signing,
  name: string,
  payment: string | undefined,
): Promise<string | undefined> {
  const message = {
    vault: world.vault,
    name,
    metadataURI: 'https://agents.example/fault.json',
    signer: signing.account.address,
    linkERC8004: false,
    erc8004AgentId: 0n,
    nonce: 0n,
    deadline: inAnHour(),
  }
  const { nonce: _, ...body } = message
  const signed = await sign(
    world,
    signing,
    { path: '/agents/register', kind: 'register', primaryType: 'SelfRegister', message, body },
    name,
  )
  const response = await post(world, payment === undefined ? signed : paying(signed, payment))
  return isSuccess(response) ? bodyOf(response).agentId : undefined
}

/** Who signs a body. */
type Signing = { account: PrivateKeyAccount; hasActiveOwner: boolean }

/** `account` is the present signer; `owner` is the key that registered the agent. */
type SimulatedAgent = Signing & {
  id: bigint
  owner: PrivateKeyAccount
  position: OpenPosition | undefined
  orderIds: Hex[]
  random: Random
}

/** Signs a body for one goal and posts it until there is a verdict. Signs another body if nothing was executed. */
async function reachGoal(world: AgentWorld, agent: SimulatedAgent, name: string) {
  const { random } = agent
  const flaw = random.chance(INVALID_SHARE) ? random.pick(FLAWS) : undefined
  const goal = (world.market && nextOrderGoal(agent)) ?? nextGoal(agent)
  const hasTwin = random.chance(TWIN_SHARE)
  for (let attempt = 1; attempt <= MAX_TRIES && !world.signal.aborted; attempt++) {
    const nonce = await nonceOf(world, agent.id)
    const draft = draftOf(world, agent, { goal, nonce, flaw })
    const account = flaw === 'signature' ? privateKeyToAccount(keyOf(random)) : agent.account
    const signed = await sign(world, { ...agent, account }, draft, `${name} ${agent.id}`)
    signed.intent.hasTwin = hasTwin
    const posts = hasTwin ? [post(world, signed), post(world, signed)] : [post(world, signed)]
    const success = (await Promise.all(posts)).find(isSuccess)
    if (success) {
      const { positionId } = bodyOf(success)
      if (goal.kind === 'open' && positionId) agent.position = { id: positionId, symbol: goal.symbol }
      if (goal.kind === 'reduce' && goal.exitBps === 10_000) agent.position = undefined
      if (goal.kind === 'order') agent.orderIds.push(signed.intent.digest)
      return
    }
    if (flaw !== undefined) return
    await sleep(200 * attempt)
  }
  if (goal.kind !== 'cancel' && goal.kind !== 'order') agent.position = undefined // continue with a new position
}

type Goal =
  | { kind: 'open'; symbol: string; usdc: string }
  | { kind: 'add'; usdc: string }
  | { kind: 'reduce'; exitBps: number }
  | { kind: 'ladder'; stopBps: number }
  | { kind: 'order' }
  | { kind: 'cancel'; orderId: Hex }

/** The share of goals that place an order, and of those that cancel one. */
const ORDER_SHARE = 0.45
const CANCEL_SHARE = 0.15

function nextOrderGoal({ random, orderIds }: SimulatedAgent): Goal | undefined {
  if (random.chance(ORDER_SHARE)) return { kind: 'order' }
  return orderIds.length > 0 && random.chance(CANCEL_SHARE)
    ? { kind: 'cancel', orderId: random.pick(orderIds) }
    : undefined
}

function nextGoal({ position, random }: SimulatedAgent): Goal {
  const usdc = `${random.integer(5, 40)}.${random.integer(10, 99)}`
  if (position === undefined) return { kind: 'open', symbol: random.pick(SYMBOLS), usdc }
  const kind = random.pick(['add', 'add', 'ladder', 'ladder', 'ladder', 'reduce', 'reduce', 'close'] as const)
  if (kind === 'add') return { kind, usdc }
  if (kind === 'ladder') return { kind, stopBps: -random.integer(500, 3_000) }
  return { kind: 'reduce', exitBps: kind === 'close' ? 10_000 : random.integer(500, 5_000) }
}

/** What can be invalid about a body. A flawed body must never be executed. */
const FLAWS = ['nonce', 'deadline', 'position', 'amount', 'signature'] as const

function draftOf(
  world: AgentWorld,
  agent: SimulatedAgent,
  { goal, nonce: nextNonce, flaw }: { goal: Goal; nonce: bigint; flaw: (typeof FLAWS)[number] | undefined },
): IntentDraft {
  const nonce = flaw === 'nonce' ? nextNonce + 7n : nextNonce
  const deadline = flaw === 'deadline' ? BigInt(agent.random.integer(1_600_000_000, 1_700_000_000)) : inAnHour()
  const signed = { agentId: agent.id, nonce, deadline }
  const positionId = flaw === 'position' ? 2n ** 40n : BigInt(agent.position?.id ?? 2n ** 41n)
  const at = (segment: string) => `/agents/${agent.id}/${segment}`
  // The flawed amount is more than any vault holds.
  const usdcAmount = (usdc: string) => (flaw === 'amount' ? '900000000.01' : usdc)
  const bought = (usdc: string) => ({ usdcAmount: usdcAmount(usdc), minTokenOut: '0', maxSlippageBps: 100 })
  const spent = (usdc: string) => ({
    usdcAmount: parseUnits(usdcAmount(usdc), 6),
    minTokenOut: 0n,
    maxSlippageBps: 100,
  })
  switch (goal.kind) {
    case 'order': {
      const { position, random } = agent
      const positionId = position && BigInt(position.id)
      const terms = { ...signed, positionId, positionSymbol: position?.symbol ?? '' }
      const startOf = world.market?.startOf ?? (() => 0n)
      const { order, body } = draftOrder(random, terms, { tokens: world.tokens, startOf })
      return { path: at('orders'), kind: 'order', primaryType: 'PlaceOrder', message: orderMessage(order), body }
    }
    case 'cancel': {
      const message = { ...signed, orderId: goal.orderId }
      const path = at(`orders/${goal.orderId}/cancel`)
      return { path, kind: 'cancel', primaryType: 'CancelOrder', message, body: {} }
    }
    case 'open': {
      const rules = ladder(-1_000)
      const token = world.tokens[goal.symbol] as Address
      const message = { ...signed, ...spent(goal.usdc), vault: world.vault, token, exitsHash: hashExits(rules) }
      const body = { ...bought(goal.usdc), symbol: goal.symbol, exits: toBodyRules(rules) }
      return { path: at('trade-intents'), kind: 'open', primaryType: 'OpenPosition', message, body }
    }
    case 'add': {
      const message = { ...signed, ...spent(goal.usdc), positionId }
      const body = { ...bought(goal.usdc), positionId }
      return { path: at('add-intents'), kind: 'add', primaryType: 'AddToPosition', message, body }
    }
    case 'reduce': {
      const { exitBps } = goal
      const terms = { positionId, exitBps }
      return {
        path: at('reduce-intents'),
        kind: 'reduce',
        primaryType: 'ReducePosition',
        message: { ...signed, ...terms },
        body: terms,
      }
    }
    case 'ladder': {
      const rules = ladder(goal.stopBps)
      const message = { ...signed, positionId, exitsHash: hashExits(rules) }
      const body = { positionId, exits: toBodyRules(rules) }
      return { path: at('exit-ladder-intents'), kind: 'ladder', primaryType: 'UpdateExitLadder', message, body }
    }
  }
}

/** The contracts other than the router that verify signatures. */
const contractOf: Partial<Record<SignedIntent['kind'], keyof Domains>> = {
  register: 'registry',
  owner: 'ownerControls',
  order: 'orderBook',
  cancel: 'orderBook',
}

type SignedBody = { method: 'POST' | 'PUT'; path: string; json: string; payment?: string; intent: SignedIntent }

async function sign(
  { domains, onIntent }: AgentWorld,
  { account, hasActiveOwner }: Signing,
  { method = 'POST', path, kind, primaryType, message, body }: IntentDraft,
  goal: string,
): Promise<SignedBody> {
  const domain = domains[contractOf[kind] ?? 'router']
  const signature = await account.signTypedData({ domain, types: signingTypes, primaryType, message } as never)
  const { deadline, nonce } = message
  const fields = kind === 'register' ? { ...body, signature } : { ...body, deadline, nonce, signature }
  const json = JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  const intent: SignedIntent = {
    digest: digestOf(domain, primaryType, message),
    kind,
    goal,
    hasTwin: false,
    hasActiveOwner,
    responses: [],
  }
  onIntent(intent)
  rememberBody(intent, { method, path, json })
  return { method, path, json, intent }
}

/** Returns the same body with a payment. */
function paying({ intent, ...request }: SignedBody, payment: string): SignedBody {
  rememberBody(intent, { ...request, payment })
  return { ...request, payment, intent }
}

type PostedBody = Omit<SignedBody, 'intent'>

/** Keeps what was posted for an intent, so that it can be posted again. */
export const rememberBody = (intent: SignedIntent, body: PostedBody) => void bodies.set(intent, body)

const bodies = new WeakMap<SignedIntent, PostedBody>()

/** Posts the same body until there is a verdict. Returns it, or the last response if the run is aborted. */
async function post(world: AgentWorld, { intent, ...request }: SignedBody): Promise<ClientResponse> {
  for (let attempt = 1; ; attempt++) {
    const response = await postOnce(world, request)
    intent.responses.push(response)
    if (isVerdict(response)) {
      world.onVerdict()
      return response
    }
    if (world.signal.aborted) return response
    await sleep(Math.min(50 * attempt, MAX_BACKOFF_MS))
  }
}

/** Posts the body of an intent until there is a verdict; for intents without one when the faults end. */
export async function postAgain(world: AgentWorld, intent: SignedIntent): Promise<void> {
  const body = bodies.get(intent)
  if (body) await post(world, { ...body, intent })
}

async function postOnce(
  { url, onResponse }: AgentWorld,
  { method, path, json, payment }: Omit<SignedBody, 'intent'>,
): Promise<ClientResponse> {
  try {
    const response = await fetch(`${url()}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...(payment !== undefined && { 'PAYMENT-SIGNATURE': payment }) },
      body: json,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
    const text = await response.text()
    onResponse(text)
    return { status: response.status, body: JSON.parse(text) }
  } catch {
    return { status: 'no response' } // the intent may have been executed
  }
}

const nonceOf = ({ client, router }: AgentWorld, agentId: bigint) =>
  client.readContract({ address: router, abi: tradeRouterAbi, functionName: 'nonces', args: [agentId] })

const ownerNonceOf = ({ client, ownerControls }: AgentWorld, owner: Address) =>
  client.readContract({ address: ownerControls, abi: ownerControlsAbi, functionName: 'nonces', args: [owner] })

let deadlines = 0
/** Returns a unique deadline, so that signing again within a second yields another digest. */
export const inAnHour = () => BigInt(Math.floor(Date.now() / 1000) + HOUR_SECONDS + deadlines++)
/** Returns a private key that the seed decides. */
export const keyOf = (random: Random): Hex =>
  `0x${Array.from({ length: 8 }, () => random.integer(1, 0xfffffffe).toString(16).padStart(8, '0')).join('')}`
const ladder = (stopBps: number): ExitRule[] => [
  { triggerType: TriggerType.StopLoss, triggerBps: BigInt(stopBps), exitBps: 10_000 },
]
const toBodyRules = (rules: ExitRule[]) =>
  rules.map(({ triggerBps, exitBps }) => ({ triggerBps: Number(triggerBps), exitBps }))
