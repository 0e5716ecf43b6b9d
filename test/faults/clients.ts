import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, type Hex, type PublicClient, parseUnits } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import {
  digestOf,
  type ExitRule,
  hashExits,
  type Message,
  type PrimaryType,
  signingTypes,
} from '../../src/protocol/typed-data.ts'
import type { Domains } from './chain-record.ts'
import { bodyOf, type Intent, isRefusal, isSuccess, type Told } from './oracle.ts'
import { type Random, randomOf } from './random.ts'

export type World = {
  /** Where the service answers at present. */
  url(): string
  client: PublicClient
  domains: Domains
  router: Address
  vault: Address
  tokens: Record<string, Address>
  /** Told of every intent that is first signed, and of everything that was answered. */
  onIntent(intent: Intent): void
  onAnswer(text: string): void
  onVerdict(): void
  onRegistered(): void
  signal: AbortSignal
}

type Step = {
  path: string
  kind: Intent['kind']
  primaryType: PrimaryType
  message: Message
  body: object
  exits?: ExitRule[]
}
type Position = { id: string; symbol: string }

const SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA']
const REQUEST_TIMEOUT_MS = 8_000
const LONGEST_BACKOFF_MS = 400
const HOUR_SECONDS = 3_600
/** How often a client signs anew for one wish before it gives up. */
const TRIES = 6
const BAD_SHARE = 0.12
const TWIN_SHARE = 0.08

/** One agent with a mind of its own: it registers, then has one intent after the other executed, as a careful client would. */
export async function runAgent(
  world: World,
  { seed, index, intents }: { seed: number; index: number; intents: number },
) {
  const random = randomOf('agent', seed, index)
  const account = privateKeyToAccount(keyOf(random))
  const agentId = await register(world, account, `${seed}-${index}`).finally(world.onRegistered)
  if (agentId === undefined) return
  const agent = { id: BigInt(agentId), account, position: undefined as Position | undefined, random }
  for (let step = 1; step < intents && !world.signal.aborted; step++) await live(world, agent, `${index}/${step}`)
}

async function register(world: World, account: PrivateKeyAccount, name: string): Promise<string | undefined> {
  const message = {
    ...{ vault: world.vault, name, metadataURI: 'https://agents.example/fault.json', signer: account.address },
    ...{ linkERC8004: false, erc8004AgentId: 0n, nonce: 0n, deadline: inAnHour() },
  }
  const { nonce: _, ...body } = message
  const signed = await sign(
    world,
    account,
    { path: '/agents/register', kind: 'register', primaryType: 'SelfRegister', message, body },
    name,
  )
  const told = await post(world, signed)
  return isSuccess(told) ? bodyOf(told).agentId : undefined
}

type Agent = { id: bigint; account: PrivateKeyAccount; position: Position | undefined; random: Random }

/** One wish: signed, posted until there is a verdict, and signed anew where that says that nothing was executed. */
async function live(world: World, agent: Agent, name: string) {
  const { random } = agent
  const bad = random.chance(BAD_SHARE) ? random.pick(badKinds) : undefined
  const wish = wishOf(agent)
  const hasTwin = random.chance(TWIN_SHARE)
  for (let attempt = 1; attempt <= TRIES && !world.signal.aborted; attempt++) {
    const nonce = await nonceOf(world, agent.id)
    const step = stepOf(world, agent, wish, nonce, bad)
    const account = bad === 'signature' ? privateKeyToAccount(keyOf(random)) : agent.account
    const signed = await sign(world, account, step, `${name} ${agent.id}`)
    signed.intent.hasTwin = hasTwin
    const posts = hasTwin ? [post(world, signed), post(world, signed)] : [post(world, signed)]
    const told = (await Promise.all(posts)).find(isSuccess)
    if (told) {
      const { positionId } = bodyOf(told)
      if (wish.is === 'open' && positionId) agent.position = { id: positionId, symbol: wish.symbol }
      if (wish.is === 'reduce' && wish.exitBps === 10_000) agent.position = undefined
      return
    }
    if (bad !== undefined) return
    await sleep(200 * attempt)
  }
  agent.position = undefined // whatever stood in the way: it begins something new
}

type Wish =
  | { is: 'open'; symbol: string; usdc: string }
  | { is: 'add'; usdc: string }
  | { is: 'reduce'; exitBps: number }
  | { is: 'ladder'; stopBps: number }

function wishOf({ position, random }: Agent): Wish {
  const usdc = `${random.integer(5, 40)}.${random.integer(10, 99)}`
  if (position === undefined) return { is: 'open', symbol: random.pick(SYMBOLS), usdc }
  const is = random.pick(['add', 'add', 'ladder', 'ladder', 'ladder', 'reduce', 'reduce', 'close'] as const)
  if (is === 'add') return { is, usdc }
  if (is === 'ladder') return { is, stopBps: -random.integer(500, 3_000) }
  return { is: 'reduce', exitBps: is === 'close' ? 10_000 : random.integer(500, 5_000) }
}

/** Ways in which a body can be wrong: none of them may ever be executed. */
const badKinds = ['nonce', 'deadline', 'position', 'amount', 'signature'] as const

function stepOf(world: World, agent: Agent, wish: Wish, due: bigint, bad: (typeof badKinds)[number] | undefined): Step {
  const nonce = bad === 'nonce' ? due + 7n : due
  const deadline = bad === 'deadline' ? BigInt(agent.random.integer(1_600_000_000, 1_700_000_000)) : inAnHour()
  const signed = { agentId: agent.id, nonce, deadline }
  const positionId = bad === 'position' ? 2n ** 40n : BigInt(agent.position?.id ?? 2n ** 41n)
  const at = (segment: string) => `/agents/${agent.id}/${segment}`
  // More than any vault holds.
  const usdcAmount = (usdc: string) => (bad === 'amount' ? '900000000.01' : usdc)
  const bought = (usdc: string) => ({ usdcAmount: usdcAmount(usdc), minTokenOut: '0', maxSlippageBps: 100 })
  const spent = (usdc: string) => ({
    usdcAmount: parseUnits(usdcAmount(usdc), 6),
    minTokenOut: 0n,
    maxSlippageBps: 100,
  })
  switch (wish.is) {
    case 'open': {
      const rules = ladder(-1_000)
      const token = world.tokens[wish.symbol] as Address
      const message = { ...signed, ...spent(wish.usdc), vault: world.vault, token, exitsHash: hashExits(rules) }
      const body = { ...bought(wish.usdc), symbol: wish.symbol, exits: sent(rules) }
      return { path: at('trade-intents'), kind: 'open', primaryType: 'OpenPosition', message, body }
    }
    case 'add': {
      const message = { ...signed, ...spent(wish.usdc), positionId }
      const body = { ...bought(wish.usdc), positionId }
      return { path: at('add-intents'), kind: 'add', primaryType: 'AddToPosition', message, body }
    }
    case 'reduce': {
      const { exitBps } = wish
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
      const rules = ladder(wish.stopBps)
      const message = { ...signed, positionId, exitsHash: hashExits(rules) }
      const body = { positionId, exits: sent(rules) }
      return { path: at('exit-ladder-intents'), kind: 'ladder', primaryType: 'UpdateExitLadder', message, body }
    }
  }
}

type Signed = { path: string; json: string; intent: Intent }

async function sign(
  { domains, onIntent }: World,
  account: PrivateKeyAccount,
  { path, kind, primaryType, message, body }: Step,
  wish: string,
): Promise<Signed> {
  const domain = kind === 'register' ? domains.registry : domains.router
  const signature = await account.signTypedData({ domain, types: signingTypes, primaryType, message } as never)
  const { deadline, nonce } = message
  const fields = kind === 'register' ? { ...body, signature } : { ...body, deadline, nonce, signature }
  const json = JSON.stringify(fields, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  const intent: Intent = { digest: digestOf(domain, primaryType, message), kind, wish, hasTwin: false, told: [] }
  onIntent(intent)
  bodies.set(intent, { path, json })
  return { path, json, intent }
}

const bodies = new WeakMap<Intent, { path: string; json: string }>()

/** Posts the identical body until there is a verdict, and answers that; without one after `until`, the last thing told. */
async function post(world: World, { path, json, intent }: Signed): Promise<Told> {
  for (let attempt = 1; ; attempt++) {
    const told = await postOnce(world, path, json)
    intent.told.push(told)
    if (isSuccess(told) || isRefusal(told)) {
      world.onVerdict()
      return told
    }
    if (world.signal.aborted) return told
    await sleep(Math.min(50 * attempt, LONGEST_BACKOFF_MS))
  }
}

/** Posts the body of an intent once more; for those that got no verdict while the faults lasted. */
export async function postAgain(world: World, intent: Intent): Promise<void> {
  const body = bodies.get(intent)
  if (body) await post(world, { ...body, intent })
}

async function postOnce({ url, onAnswer }: World, path: string, json: string): Promise<Told> {
  try {
    const response = await fetch(`${url()}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: json,
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
    const text = await response.text()
    onAnswer(text)
    return { status: response.status, body: JSON.parse(text) }
  } catch {
    return { status: 'no answer' } // it may have been executed all the same
  }
}

const nonceOf = ({ client, router }: World, agentId: bigint) =>
  client.readContract({ address: router, abi: tradeRouterAbi, functionName: 'nonces', args: [agentId] })

let signed = 0
/** Never the same one twice: what is signed anew is another intent, also within a second. */
const inAnHour = () => BigInt(Math.floor(Date.now() / 1000) + HOUR_SECONDS + signed++)
const keyOf = (random: Random): Hex =>
  `0x${Array.from({ length: 8 }, () => random.integer(1, 0xfffffffe).toString(16).padStart(8, '0')).join('')}`
const ladder = (stopBps: number): ExitRule[] => [{ triggerType: 0, triggerBps: BigInt(stopBps), exitBps: 10_000 }]
const sent = (rules: ExitRule[]) =>
  rules.map(({ triggerBps, exitBps }) => ({ triggerBps: Number(triggerBps), exitBps }))
