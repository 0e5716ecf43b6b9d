import { triggerPrice } from '@agent-trading-service/protocol/order-rules'
import { type Order, OrderCondition } from '@agent-trading-service/protocol/order-typed-data'
import type { Hex } from 'viem'

/** What GET /intents/{digest} returns, as far as the harness reads it. */
export type IntentStatus = { state: string; agentId?: string; positionId?: string; transactionHash?: Hex }

type ResponseBody = {
  code?: string
  agentId?: string
  positionId?: string
  orderId?: Hex
  transactionHash?: Hex
  /** Facts of a refusal. */
  details?: { transactionHash?: Hex } | undefined
}

/** What a client received for one signed body. */
export type ClientResponse = { status: number; body: ResponseBody } | { status: 'no response' }

/** One signed body and every response to it, in order. */
export type SignedIntent = {
  digest: Hex
  kind: 'register' | 'open' | 'add' | 'reduce' | 'ladder' | 'order' | 'cancel' | 'owner'
  /** The goal this body tries to reach. A client signs another body for the same goal after an error. */
  goal: string
  /** Whether the body was posted twice at once. One post may then get an error although the other one succeeds. */
  hasTwin: boolean
  /** Whether the owner acts on the agent during the run. */
  hasActiveOwner: boolean
  responses: ClientResponse[]
}

/** A transaction of the service's accounts in a block, with the ids of its event. */
export type Execution = {
  hash: Hex
  /** Undefined if the transaction carries no intent. */
  digest?: Hex | undefined
  succeeded: boolean
  agentId?: string | undefined
  positionId?: string | undefined
  orderId?: Hex | undefined
}

/**
 * An account after a run: transactions mined in the run, nonces relative to its start, and transactions in the pool.
 */
export type AccountState = { address: string; mined: number; nonce: number; pendingNonce: number; inPool: number }

/** What the registrations of a run cost: how many fees were paid, and how often each payer's settlement reverted. */
export type Charges = { paid: number; revertsByPayer: readonly number[] }

/**
 * An event of the order book. Times are Unix seconds, prices have 8 decimals; those of an execution are the oracle's at
 * its log.
 */
export type OrderEvent = { orderId: Hex; order: Order; agentId: string; hash: Hex; timestamp: number } & (
  | { name: 'OrderPlaced' | 'OrderPeakRaised'; peak: bigint }
  | { name: 'OrderExecuted'; part: number; price: bigint; observedAt: number; maxAge: number }
  | { name: 'OrderEnded'; reason: number }
)

/** An order as the service lists it, as far as the harness reads it. */
export type ShownOrder = {
  orderId: Hex
  state: string
  endReason: string | null
  executions: { part: number; transactionHash: Hex }[]
}

/**
 * The orders of a run: the events of the chain, oldest first, what the service lists and streamed, and how many due
 * ones were left.
 */
export type OrderRun = { events: OrderEvent[]; shown: ShownOrder[]; streamed: string[]; left: number }

/** Everything that is known about a run after the service has become idle. */
export type RunRecord = {
  intents: SignedIntent[]
  executions: Execution[]
  accounts: AccountState[]
  /** Undefined if registrations are free. */
  charges?: Charges | undefined
  /** Undefined if agents place no orders. */
  orders?: OrderRun | undefined
  /** Whether a reorg removed blocks. Their transactions may be signed again, with a higher fee or another nonce. */
  lostBlocks: boolean
  /** Whether a foreign transaction used an account's nonce. */
  hasForeignUse: boolean
  /** What the service says in the end about the intents whose outcome it told; empty unless blocks were lost. */
  statuses: ReadonlyMap<Hex, IntentStatus>
  /** Everything the service printed and returned. */
  texts: string[]
  /** What no text may contain. */
  secrets: string[]
}

export type Violation = { rule: ViolatedRule; what: string }
export type ViolatedRule =
  | 'executed twice'
  | 'goal reached twice'
  | 'false success'
  | 'false error'
  | 'no verdict'
  | 'not idle'
  | 'unknown execution'
  | 'charged twice'
  | 'registered without payment'
  | 'settled again after a revert'
  | 'secret leaked'
  | 'part executed twice'
  | 'executed after its end'
  | 'executed on a stale price'
  | 'executed before its time'
  | 'executed at another price'
  | 'due order left'
  | 'order list differs'
  | 'order event missing'

/** Returns what the service did wrong in a run: intents executed more than once, false responses, leaked secrets. */
export function findViolations(run: RunRecord): Violation[] {
  const { intents, executions, accounts, texts, secrets, lostBlocks } = run
  const violations: Violation[] = []
  const report = (rule: ViolatedRule, what: string) => violations.push({ rule, what })
  const successes = Map.groupBy(
    executions.filter(({ succeeded }) => succeeded),
    ({ digest }) => digest,
  )
  const byHash = new Map(executions.map(execution => [execution.hash, execution]))

  for (const intent of intents) {
    const { digest, kind, responses } = intent
    const name = `${kind} ${digest}`
    const executed = successes.get(digest) ?? []
    if (executed.length > 1) report('executed twice', `${name} in ${executed.map(({ hash }) => hash).join(', ')}`)
    for (const response of responses) {
      if (isSuccess(response)) {
        const resent = lostBlocks ? executed[0] : undefined
        const problem = problemWith(intent, bodyOf(response), { byHash, resent })
        if (problem && !isCorrected(run, intent, executed[0]))
          report('false success', `${name}: ${problem}${saidAbout(run, digest)}`)
      } else if (isRefusal(response) && executed[0] && !(intent.hasTwin && responses.some(isSuccess))) {
        const hasRevertedBefore = bodyOf(response).details?.transactionHash === executed[0].hash
        if (!hasRevertedBefore || !isCorrected(run, intent, executed[0]))
          report(
            'false error',
            `${name} got ${responses.map(nameOf).join(', ')} and was executed in ${executed[0].hash}`,
          )
      }
    }
    if (!responses.some(isVerdict))
      report('no verdict', `${name} got ${responses.map(nameOf).join(', ') || 'no response'}`)
  }

  const reached = Map.groupBy(
    intents.filter(({ digest }) => successes.has(digest)),
    ({ goal }) => goal,
  )
  for (const [goal, bodies] of reached)
    if (bodies.length > 1) report('goal reached twice', `${goal} by ${bodies.map(({ digest }) => digest).join(', ')}`)
  const known = new Set(intents.map(({ digest }) => digest))
  for (const { digest, hash } of executions)
    if (digest !== undefined && !known.has(digest)) report('unknown execution', `${digest} in ${hash}`)

  for (const { rule, what } of [...findPaymentViolations(run), ...findOrderViolations(run)]) report(rule, what)
  for (const { address, mined, nonce, pendingNonce, inPool } of accounts)
    if (nonce !== mined || pendingNonce !== nonce || inPool > 0)
      report(
        'not idle',
        `${address} has nonce ${nonce}, pending nonce ${pendingNonce}, ${mined} mined and ${inPool} in the pool`,
      )
  for (const text of texts) {
    const secret = secrets.find(secret => text.includes(secret))
    if (secret !== undefined) report('secret leaked', text.slice(Math.max(0, text.indexOf(secret) - 60)).slice(0, 160))
  }
  return violations
}

export const isSuccess = ({ status }: ClientResponse): boolean => status === 200 || status === 201

/** Whether a response says that nothing was executed and nothing will be. */
export const isRefusal = (response: ClientResponse): boolean => {
  const { status } = response
  return typeof status === 'number' && ((status >= 400 && status < 500) || bodyOf(response).code === 'TOO_MANY_REVERTS')
}

/** Whether a response is definite, so that a client stops posting the body. */
export const isVerdict = (response: ClientResponse): boolean => isSuccess(response) || isRefusal(response)

/** Returns the body of a response; empty without one. */
export const bodyOf = (response: ClientResponse): ResponseBody => ('body' in response ? response.body : {})

const nameOf = (response: ClientResponse) => `${response.status} ${bodyOf(response).code ?? ''}`.trim()

/** Returns the errors of a success: its ids must match the transaction's event. */
function problemWith(
  { kind, digest }: SignedIntent,
  body: ResponseBody,
  { byHash, resent }: { byHash: ReadonlyMap<Hex, Execution>; resent: Execution | undefined },
): string | undefined {
  const execution = (body.transactionHash && byHash.get(body.transactionHash)) ?? resent
  if (execution === undefined) return `there is no transaction ${body.transactionHash}`
  if (!execution.succeeded) return `${execution.hash} reverted`
  if (execution.digest !== digest) return `${execution.hash} carries another intent`
  if (kind === 'owner') return undefined
  const id = kind === 'register' ? 'agentId' : isOfOrders(kind) ? 'orderId' : 'positionId'
  return body[id] === execution[id] ? undefined : `it returned ${id} ${body[id]} instead of ${execution[id]}`
}

const isOfOrders = (kind: SignedIntent['kind']) => kind === 'order' || kind === 'cancel'

const saidAbout = ({ lostBlocks, statuses }: RunRecord, digest: Hex) =>
  lostBlocks ? `; in the end the service says ${JSON.stringify(statuses.get(digest))}` : ''

/**
 * Whether the service says in the end what became of an intent whose outcome it told. A reorg can undo an outcome if
 * the owner's message, a foreign transaction at its nonce, or a price of a run with orders is mined before the intent
 * one time and after it the other time.
 */
function isCorrected(
  { lostBlocks, hasForeignUse, orders, statuses }: RunRecord,
  { digest, kind, hasActiveOwner }: SignedIntent,
  executed: Execution | undefined,
): boolean {
  const status = statuses.get(digest)
  const isMoved = hasForeignUse || hasActiveOwner || orders !== undefined
  if (!lostBlocks || status === undefined || !isMoved) return false
  if (executed === undefined) return ['rejected', 'reverted', 'dropped'].includes(status.state)
  const isExecuted = status.state === 'mined' || status.state === 'final'
  return (
    isExecuted &&
    (kind === 'register' || kind === 'owner' || isOfOrders(kind) || status.positionId === executed.positionId)
  )
}

/**
 * Returns what is wrong with the payments: every registered agent has paid once, and no reverted settlement is
 * repeated.
 */
function findPaymentViolations({ charges, intents, executions }: RunRecord): Violation[] {
  if (charges === undefined) return []
  const digests = new Set(intents.filter(({ kind }) => kind === 'register').map(({ digest }) => digest))
  const registered = executions.filter(({ digest, succeeded }) => succeeded && digest && digests.has(digest)).length
  const what = `${charges.paid} fees for ${registered} registrations`
  const repeated = charges.revertsByPayer.filter(reverts => reverts > 1)
  return [
    ...(charges.paid > registered ? [{ rule: 'charged twice', what } as const] : []),
    ...(charges.paid < registered ? [{ rule: 'registered without payment', what } as const] : []),
    ...repeated.map(
      reverts => ({ rule: 'settled again after a revert', what: `${reverts} reverts of one payer` }) as const,
    ),
  ]
}

/** Names an event of an order in the stream and on the chain. */
export const eventKey = (name: string, orderId: string, hash: string, part?: number): string =>
  [name, orderId, hash, ...(name === 'OrderExecuted' ? [part] : [])].join(' ')

/** In the order of `IOrderBook.OrderEnd`. */
const END_REASONS = ['cancelled', 'replaced', 'expired', 'voided', 'positionClosed']
/**
 * What an order that still has its slot may be called: a dead one has ended for the service before somebody frees the
 * slot.
 */
const OPEN_STATES = ['open', 'partlyFilled', 'executing', 'expired', 'failed']

/**
 * Returns what is wrong with the executions of orders, by the chain alone, and with what the service says about orders.
 */
function findOrderViolations({ orders }: RunRecord): Violation[] {
  if (orders === undefined) return []
  const { events, shown, streamed, left } = orders
  const violations: Violation[] = []
  const report = (rule: ViolatedRule, what: string) => violations.push({ rule, what })
  if (left > 0) report('due order left', `the keeper left ${left} orders that anybody could execute`)
  const listed = new Map(shown.map(order => [order.orderId, order]))
  if (listed.size !== shown.length) report('order list differs', `${shown.length} orders have ${listed.size} ids`)

  const byOrder = Map.groupBy(events, ({ orderId }) => orderId)
  for (const [orderId, history] of byOrder) {
    for (const { rule, what } of findExecutionViolations(history)) report(rule, `${orderId} ${what}`)
    const executed = history.filter(({ name }) => name === 'OrderExecuted').map(({ hash }) => hash)
    const end = history.find(({ name }) => name === 'OrderEnded')
    const order = listed.get(orderId)
    const hashes = order?.executions.map(({ transactionHash }) => transactionHash)
    const isRight =
      end?.name === 'OrderEnded'
        ? order?.endReason === END_REASONS[end.reason]
        : executed.length === history[0]?.order.parts
          ? order?.state === 'filled'
          : OPEN_STATES.includes(order?.state ?? '')
    if (hashes?.join() !== executed.join() || !isRight)
      report('order list differs', `${orderId} is ${JSON.stringify(order)}; the chain has ${history.map(e => e.name)}`)
  }
  for (const orderId of listed.keys())
    if (!byOrder.has(orderId)) report('order list differs', `${orderId} is not on the chain`)

  const expected = events
    .filter(({ name }) => name !== 'OrderPeakRaised')
    .map(event => eventKey(event.name, event.orderId, event.hash, 'part' in event ? event.part : undefined))
  const seen = Map.groupBy(streamed, key => key)
  for (const key of expected)
    if (seen.get(key)?.length !== 1) report('order event missing', `${key} came ${seen.get(key)?.length ?? 0} times`)
  for (const key of seen.keys())
    if (!expected.includes(key)) report('order event missing', `${key} is not on the chain`)
  return violations
}

/** Returns what is wrong with the executions of one order. */
function findExecutionViolations(history: readonly OrderEvent[]): Violation[] {
  const [placed] = history
  if (placed === undefined) return []
  const { order } = placed
  const violations: Violation[] = []
  const report = (rule: ViolatedRule, what: string) => violations.push({ rule, what })
  let peak = 0n
  let parts = 0
  let hasEnded = false
  let nextAt = Number(order.validAfter)
  for (const event of history) {
    if (event.name === 'OrderPlaced' || event.name === 'OrderPeakRaised') peak = event.peak
    if (event.name === 'OrderEnded') hasEnded = true
    if (event.name !== 'OrderExecuted') continue
    const { part, price, observedAt, maxAge, timestamp, hash } = event
    if (part !== ++parts || part > order.parts)
      report('part executed twice', `part ${part} after ${parts - 1} in ${hash}`)
    if (hasEnded) report('executed after its end', `in ${hash}`)
    if (timestamp < nextAt || timestamp > order.validUntil)
      report('executed before its time', `at ${timestamp} in ${hash}`)
    nextAt = timestamp + Number(order.interval)
    if (maxAge > 0 && timestamp - observedAt > maxAge)
      report('executed on a stale price', `of ${observedAt} in ${hash}`)
    const trigger = triggerPrice(order, peak)
    const isMet =
      order.condition === OrderCondition.None ||
      (trigger !== undefined && (order.condition === OrderCondition.AtOrAbove ? price >= trigger : price <= trigger))
    if (!isMet) report('executed at another price', `${price} instead of ${trigger} in ${hash}`)
    if (order.condition !== OrderCondition.None && observedAt <= placed.timestamp)
      report('executed on a stale price', `from before it in ${hash}`)
  }
  return violations
}
