import { type Order, OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { type Hex, pad } from 'viem'
import { describe, expect, test } from 'vitest'
import {
  type Execution,
  eventKey,
  findViolations,
  type OrderEvent,
  type RunRecord,
  type SignedIntent,
  type ViolatedRule,
} from '../faults/violations.ts'

const [A, B, TX, OTHER] = [pad('0xa'), pad('0xb'), pad('0x1'), pad('0x2')]
const success = { status: 201, body: { agentId: '1', positionId: '7', transactionHash: TX } }
const error = { status: 400, body: { code: 'INVALID_NONCE' } }
const lost = { status: 'no response' } as const

const revert = { status: 400, body: { code: 'INVALID_SIGNATURE', details: { transactionHash: TX } } } as const
const intent = (changes: Partial<SignedIntent> = {}): SignedIntent => ({
  digest: A,
  kind: 'open',
  goal: 'g',
  hasTwin: false,
  hasActiveOwner: false,
  responses: [success],
  ...changes,
})
const execution = (changes: Partial<Execution> = {}): Execution => ({
  hash: TX,
  digest: A,
  succeeded: true,
  agentId: '1',
  positionId: '7',
  ...changes,
})
const run = (changes: Partial<RunRecord> = {}): RunRecord => ({
  intents: [intent()],
  executions: [execution()],
  accounts: [{ address: '0x1', mined: 1, nonce: 1, pendingNonce: 1, inPool: 0 }],
  texts: ['{"code":"INVALID_NONCE"}'],
  secrets: ['canary'],
  lostBlocks: false,
  hasForeignUse: false,
  statuses: new Map(),
  ...changes,
})
const rules = (changes: Partial<RunRecord>) => findViolations(run(changes)).map(({ rule }) => rule)

describe('no violation is reported for', () => {
  test.each<[string, Partial<RunRecord>]>([
    ['an intent that was executed and confirmed', {}],
    [
      'responses that were lost before a correct one arrived',
      { intents: [intent({ responses: [lost, { status: 502, body: {} }, success] })] },
    ],
    ['an intent that got an error and was not executed', { intents: [intent({ responses: [error] })], executions: [] }],
    [
      'an error for an intent that reverted on chain',
      { intents: [intent({ responses: [error] })], executions: [execution({ succeeded: false })] },
    ],
    [
      'a registration, which has no position',
      {
        intents: [intent({ kind: 'register' })],
        executions: [execution({ positionId: undefined })],
      },
    ],
    [
      'an order, whose id the response and the event name',
      {
        intents: [intent({ kind: 'order', responses: [{ status: 201, body: { orderId: A, transactionHash: TX } }] })],
        executions: [execution({ positionId: undefined, orderId: A })],
      },
    ],
    [
      'an intent that was signed again in another transaction after a reorg',
      { executions: [execution({ hash: OTHER })], lostBlocks: true },
    ],
    [
      'an error and a success for a body that was posted twice at once',
      { intents: [intent({ hasTwin: true, responses: [error, success] })] },
    ],
    [
      'a refusal to sign anything after many reverts',
      { intents: [intent({ responses: [{ status: 503, body: { code: 'TOO_MANY_REVERTS' } }] })], executions: [] },
    ],
    [
      'a confirmed intent that a reorg moved behind a message of its owner, if the service says so',
      {
        intents: [intent({ hasActiveOwner: true })],
        executions: [execution({ succeeded: false })],
        lostBlocks: true,
        statuses: new Map([[A, { state: 'reverted' }]]),
      },
    ],
    [
      'a position whose id a foreign transaction changed after a reorg, if the service says so',
      {
        executions: [execution({ positionId: '8' })],
        lostBlocks: true,
        hasForeignUse: true,
        statuses: new Map([[A, { state: 'mined', positionId: '8' }]]),
      },
    ],
    [
      'a revert that a reorg moved before a message of its owner, so that the transaction succeeded, if the service says so',
      {
        intents: [intent({ hasActiveOwner: true, responses: [revert] })],
        lostBlocks: true,
        statuses: new Map([[A, { state: 'mined', positionId: '7' }]]),
      },
    ],
    [
      'a zero-value transfer that fills a nonce',
      { executions: [execution(), execution({ hash: OTHER, digest: undefined })] },
    ],
  ])('%s', (_, changes) => {
    expect(findViolations(run(changes))).toEqual([])
  })
})

describe('a violation is reported for', () => {
  test.each<[string, string, Partial<RunRecord>]>([
    ['an intent that was executed twice', 'executed twice', { executions: [execution(), execution({ hash: OTHER })] }],
    ['a success that names another transaction', 'false success', { executions: [execution({ hash: OTHER })] }],
    ['a success without a transaction', 'false success', { executions: [] }],
    ['a success that reverted', 'false success', { executions: [execution({ succeeded: false })] }],
    ['a success with the id of another position', 'false success', { executions: [execution({ positionId: '8' })] }],
    [
      'a registration with the id of another agent',
      'false success',
      { intents: [intent({ kind: 'register' })], executions: [execution({ agentId: '2' })] },
    ],
    [
      'a confirmed intent that a reorg undid without the service saying so',
      'false success',
      {
        intents: [intent({ hasActiveOwner: true })],
        executions: [],
        lostBlocks: true,
        statuses: new Map([[A, { state: 'mined', positionId: '7' }]]),
      },
    ],
    [
      'a confirmed intent that a reorg undid for no reason',
      'false success',
      { executions: [], lostBlocks: true, statuses: new Map([[A, { state: 'rejected' }]]) },
    ],
    [
      'an execution after too many reverts were reported',
      'false error',
      { intents: [intent({ responses: [{ status: 503, body: { code: 'TOO_MANY_REVERTS' } }] })] },
    ],
    [
      'errors only for a body that was posted twice at once and executed',
      'false error',
      { intents: [intent({ hasTwin: true, responses: [error] })] },
    ],
    ['an error for an executed intent', 'false error', { intents: [intent({ responses: [error] })] }],
    [
      'a revert that became a success without the service saying so',
      'false error',
      { intents: [intent({ hasActiveOwner: true, responses: [revert] })], lostBlocks: true },
    ],
    [
      'a refusal that names no transaction',
      'false error',
      {
        intents: [intent({ hasActiveOwner: true, responses: [error] })],
        lostBlocks: true,
        statuses: new Map([[A, { state: 'mined', positionId: '7' }]]),
      },
    ],
    ['a success after an error', 'false error', { intents: [intent({ responses: [error, success] })] }],
    [
      'an intent without a definite response',
      'no verdict',
      { intents: [intent({ responses: [lost] })], executions: [] },
    ],
    [
      'an execution that no client requested',
      'unknown execution',
      {
        executions: [execution(), execution({ hash: OTHER, digest: B })],
      },
    ],
    [
      'a nonce that was used elsewhere',
      'not idle',
      {
        accounts: [{ address: '0x1', mined: 1, nonce: 2, pendingNonce: 2, inPool: 0 }],
      },
    ],
    [
      'a transaction that is still in the pool',
      'not idle',
      {
        accounts: [{ address: '0x1', mined: 1, nonce: 1, pendingNonce: 1, inPool: 1 }],
      },
    ],
    [
      'a second fee for one registration',
      'charged twice',
      { intents: [intent({ kind: 'register' })], charges: { paid: 2, revertsByPayer: [] } },
    ],
    [
      'a registration that nobody paid for',
      'registered without payment',
      { intents: [intent({ kind: 'register' })], charges: { paid: 0, revertsByPayer: [1] } },
    ],
    [
      'a settlement that was sent again after it reverted',
      'settled again after a revert',
      { intents: [intent({ kind: 'register' })], charges: { paid: 1, revertsByPayer: [2] } },
    ],
    ['a secret in a log', 'secret leaked', { texts: ['fetch failed: http://127.0.0.1/canary'] }],
  ])('%s', (_, rule, changes) => {
    expect(rules(changes)).toEqual([rule])
  })

  test('a violation is reported for a goal that was reached twice because a client signed again after a false error', () => {
    const intents = [
      intent({ responses: [error] }),
      intent({ digest: B, responses: [{ ...success, body: { ...success.body, transactionHash: OTHER } }] }),
    ]
    const executions = [execution(), execution({ hash: OTHER, digest: B })]
    expect(rules({ intents, executions })).toEqual(['false error', 'goal reached twice'])
  })
})

describe('of the orders of a run', () => {
  const order: Order = {
    agentId: 1n,
    side: OrderSide.Reduce,
    token: TX,
    positionId: 7n,
    usdcAmount: 0n,
    exitBps: 10_000,
    exits: [],
    maxSlippageBps: 0,
    condition: OrderCondition.Trailing,
    price: 0n,
    trailBps: 1_000,
    validAfter: 0n,
    validUntil: 1_000n,
    parts: 2,
    interval: 60n,
    key: 0n,
    deadline: 10n,
    nonce: 0n,
  }
  const known = { orderId: A, order, agentId: '1' }
  const placed = { ...known, name: 'OrderPlaced', peak: 100n, hash: B, timestamp: 10 } as const
  const raised = { ...known, name: 'OrderPeakRaised', peak: 200n, hash: B, timestamp: 20 } as const
  const part = (number: number, changes: Partial<Extract<OrderEvent, { name: 'OrderExecuted' }>> = {}) =>
    ({
      ...known,
      name: 'OrderExecuted',
      part: number,
      hash: number === 1 ? TX : OTHER,
      timestamp: 100 * number,
      price: 180n,
      observedAt: 100 * number - 5,
      maxAge: 50,
      ...changes,
    }) as const
  const cancelled = { ...known, name: 'OrderEnded', reason: 0, hash: B, timestamp: 150 } as const
  const shownAs = (state: string, endReason: string | null, ...hashes: Hex[]) => ({
    orderId: A,
    state,
    endReason,
    executions: hashes.map((transactionHash, index) => ({ part: index + 1, transactionHash })),
  })
  const keysOf = (events: readonly OrderEvent[]) =>
    events.flatMap(event =>
      event.name === 'OrderPeakRaised'
        ? []
        : [eventKey(event.name, A, event.hash, 'part' in event ? event.part : undefined)],
    )
  const violated = (events: OrderEvent[], shown = shownAs('filled', null, TX, OTHER), streamed = keysOf(events)) =>
    new Set(rules({ orders: { events, shown: [shown], streamed, left: 0 } }))

  test('nothing is reported of one whose parts executed at their time and price, or that was cancelled before', () => {
    expect(violated([placed, raised, part(1), part(2)])).toEqual(new Set())
    expect(violated([placed, raised, part(1), cancelled], shownAs('cancelled', 'cancelled', TX))).toEqual(new Set())
  })

  test.each<[ViolatedRule, OrderEvent[]]>([
    ['part executed twice', [placed, raised, part(1), part(1, { timestamp: 300, observedAt: 299, hash: OTHER })]],
    ['executed before its time', [placed, raised, part(1), part(2, { timestamp: 130, observedAt: 129 })]],
    ['executed on a stale price', [placed, raised, part(1), part(2, { observedAt: 140 })]],
    ['executed on a stale price', [placed, raised, part(1, { observedAt: 10, maxAge: 100 }), part(2)]],
    ['executed at another price', [placed, raised, part(1), part(2, { price: 181n })]],
  ])('"%s" is reported alone', (rule, events) => {
    expect(violated(events)).toEqual(new Set([rule]))
  })

  test('an execution after a mined cancellation is reported', () => {
    const events = [placed, raised, part(1), cancelled, part(2)]
    expect(violated(events, shownAs('cancelled', 'cancelled', TX, OTHER))).toEqual(new Set(['executed after its end']))
  })

  test('a list or a stream that differs from the chain is reported', () => {
    const events = [placed, raised, part(1), part(2)]
    expect(violated(events, shownAs('open', null, TX))).toEqual(new Set(['order list differs']))
    expect(violated(events, undefined, keysOf(events).slice(1))).toEqual(new Set(['order event missing']))
    expect(violated(events, undefined, [...keysOf(events), ...keysOf([placed])])).toEqual(
      new Set(['order event missing']),
    )
  })
})
