import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Address, bytesToHex, type Hex, hexToBigInt, numberToHex, pad, parseTransaction } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { createExecutor, type Executor } from '../../src/executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../../src/executor/intent.ts'

/** Adds one to the slot that the call data name and logs it; reverts with 42 while slot 0 is set. */
const COUNTER: Address = '0x00000000000000000000000000000000000c0de0'
const COUNTER_CODE = '0x5f355f5415601057602a5f5260205ffd5b805460010181555f5fa100'
const FORTY_TWO = pad('0x2a')
const WORD = 32

const node = globalThis.fetch

/** Asks the node itself, past the faults. */
async function chain<T = unknown>(method: string, ...params: unknown[]): Promise<T> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await node(inject('laneRpcUrl'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { result, error } = (await response.json()) as { result: T; error?: { message: string } }
  if (error) throw new Error(`${method}: ${error.message}`)
  return result
}

/** What happens to a request of the lane on its way; `forward` hands it to the node. */
type Fault = (
  request: { method: string; params: readonly unknown[]; isSpare: boolean; signal: AbortSignal },
  forward: () => Promise<Response>,
) => Promise<Response>
let fault: Fault | undefined
let requests: string[] = []
const lost = () => Promise.reject(new TypeError('Network connection lost.'))
const isSend = (method: string) => method.startsWith('eth_sendRawTransaction')

/** Blocks come every 250 ms, as on the chains that are served, unless a test stops them. */
let isMining = true
const mine = () => chain('evm_mine')
setInterval(() => isMining && void mine(), 250)

beforeAll(async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    const forward = () => node(inject('laneRpcUrl'), init)
    type Request = { method: string; params: unknown[] }
    const body = JSON.parse(String(init?.body)) as Request | Request[]
    const params = Array.isArray(body) ? [] : body.params
    const method = Array.isArray(body) ? `batch ${body.map(({ method }) => method).join(' ')}` : body.method
    requests.push(method)
    const isSpare = String(input).endsWith(inject('laneSpare'))
    return fault ? fault({ method, params, isSpare, signal: init?.signal as AbortSignal }, forward) : forward()
  })
  await chain('anvil_setCode', COUNTER, COUNTER_CODE)
})
afterEach(async () => {
  fault = undefined
  requests = []
  await setMood(false)
  isMining = true
})
afterAll(() => vi.restoreAllMocks())

const keys = [...inject('laneKeys')]

/** An executor over a key that no other test uses. */
function freshLane() {
  const key = keys.pop()
  if (key === undefined) throw new Error('more lanes are needed than the chain has accounts')
  const executor = createExecutor(env.EXECUTOR_LANE, [key], { inclusionTimeoutMs: 3_000 })
  const stub = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(executor.address))
  return { executor, account: privateKeyToAccount(key), stub }
}

/** Applies a fault to the first send only, and to nothing else. */
function onFirstSend(first: Fault): Fault {
  let isOver = false
  return (request, forward) => {
    if (isOver || !isSend(request.method)) return forward()
    isOver = true
    return first(request, forward)
  }
}
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const setMood = (isBad: boolean) => chain('anvil_setStorageAt', COUNTER, pad('0x0'), pad(isBad ? '0x1' : '0x0'))
const poolHolds = async (hash: Hex) => (await chain<object | null>('eth_getTransactionByHash', hash)) !== null
const sends = () => requests.filter(isSend)
/** Resolves once the lane has handed its first transaction to the node. */
const firstSend = () => vi.waitFor(() => expect(sends()).not.toEqual([]), { timeout: 5_000, interval: 10 })

const random = () => bytesToHex(crypto.getRandomValues(new Uint8Array(WORD)))

function intent(facts: Partial<RelayRequest> = {}): RelayRequest {
  const digest = random()
  const relay: RelayRequest = {
    digest,
    kind: 'ladder',
    group: `agent:${digest}`,
    groupNonce: '0',
    deadline: BigInt(Math.floor(Date.now() / 1000) + 3_600),
    call: { to: COUNTER, data: digest },
  }
  return { ...relay, ...facts }
}

/** How often an intent was executed on the chain. */
const executions = async ({ call }: RelayRequest) =>
  hexToBigInt(await chain<Hex>('eth_getStorageAt', COUNTER, call.data, 'latest'))
const nonceOf = async (address: Address) => Number(await chain<Hex>('eth_getTransactionCount', address, 'latest'))

/** Uses an account's nonce for a transfer of nothing, as somebody else who has the key. */
async function foreignTransaction(account: PrivateKeyAccount, nonce: number) {
  const gasPrice = 100_000_000_000n
  const fees = { maxFeePerGas: gasPrice, maxPriorityFeePerGas: gasPrice }
  const transaction = { chainId: 31337, nonce, gas: 21_000n, to: account.address, ...fees }
  await chain('eth_sendRawTransaction', await account.signTransaction(transaction))
  await vi.waitFor(async () => expect(await nonceOf(account.address)).toBe(nonce + 1), { timeout: 5_000 })
}

function hashOf(outcome: RelayOutcome): Hex {
  if (!('hash' in outcome) || outcome.hash === undefined) throw new Error(`no transaction: ${outcome.state}`)
  return outcome.hash
}

async function mined(executor: Executor, relay: RelayRequest): Promise<RelayOutcome & { state: 'mined' }> {
  const outcome = await vi.waitFor(
    async () => {
      const outcome = await executor.relay(relay)
      expect(outcome.state).toBe('mined')
      return outcome
    },
    { timeout: 20_000, interval: 50 },
  )
  return outcome as RelayOutcome & { state: 'mined' }
}

describe('a relay', () => {
  test('is mined, and its logs and hash are those of the receipt', async () => {
    const { executor } = freshLane()
    const relay = intent()
    const outcome = await executor.relay(relay)
    const receipt = await chain<{ blockNumber: Hex; status: Hex }>('eth_getTransactionReceipt', hashOf(outcome))
    expect(outcome).toEqual({
      state: 'mined',
      hash: hashOf(outcome),
      blockNumber: hexToBigInt(receipt.blockNumber),
      logs: [{ address: COUNTER, topics: [relay.digest], data: '0x' }],
    })
    expect(receipt.status).toBe('0x1')
  })

  test('costs two requests when the lane is warm', async () => {
    const { executor } = freshLane()
    await executor.relay(intent())
    requests = []
    await executor.relay(intent())
    expect(requests.filter(method => !method.startsWith('batch'))).toEqual(['eth_call', 'eth_sendRawTransactionSync'])
  })

  test('of two hundred agents at once is mined exactly once each', async () => {
    const { executor, account } = freshLane()
    const relays = Array.from({ length: 200 }, () => intent())
    await Promise.all(relays.map(relay => mined(executor, relay)))
    expect(await Promise.all(relays.map(executions))).toEqual(relays.map(() => 1n))
    expect(await nonceOf(account.address)).toBe(200)
  })
})

describe('the same signed body', () => {
  test('sent ten times at once is one transaction with one answer', async () => {
    const { executor, account } = freshLane()
    const relay = intent()
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => executor.relay(relay)))
    expect(outcomes[0]).toMatchObject({ state: 'mined' })
    expect(outcomes).toEqual(outcomes.map(() => outcomes[0]))
    expect(await executor.relay(relay)).toEqual(outcomes[0])
    expect(await executions(relay)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(1)
  })

  test('is found while it is received, mined and final', async () => {
    const { executor, stub } = freshLane()
    const relay = intent({ group: 'agent:7', groupNonce: '3' })
    expect(await executor.find(relay.group, relay.digest)).toBeUndefined()
    const held = Promise.withResolvers<void>()
    fault = async (_, forward) => held.promise.then(forward)
    const running = executor.relay(relay)
    await vi.waitFor(async () =>
      expect(await executor.find(relay.group, relay.digest)).toMatchObject({ state: 'received' }),
    )
    held.resolve()
    const hash = hashOf(await running)
    expect(await executor.find(relay.group, relay.digest)).toMatchObject({
      ...{ digest: relay.digest, kind: 'ladder', group: 'agent:7', groupNonce: '3', state: 'mined' },
      attempts: [{ hash, nonce: 0, sentAt: expect.any(Number) }],
      blockNumber: expect.any(BigInt),
    })
    await chain('anvil_mine', numberToHex(70))
    await runDurableObjectAlarm(stub)
    expect(await executor.find(relay.group, relay.digest)).toMatchObject({ state: 'final' })
  })

  test('is forgotten a day after its deadline', async () => {
    const { executor, stub } = freshLane()
    const relay = intent({ deadline: 1n })
    await mined(executor, relay)
    await chain('anvil_mine', numberToHex(70))
    await runDurableObjectAlarm(stub)
    expect(await executor.find(relay.group, relay.digest)).toBeUndefined()
  })
})

describe('a group', () => {
  test('has one digest per nonce: another body is a conflict, at once and later', async () => {
    const { executor, account } = freshLane()
    const [first, second] = [intent({ group: 'agent:1' }), intent({ group: 'agent:1' })]
    const outcomes = await Promise.all([executor.relay(first), executor.relay(second)])
    const conflict = { state: 'conflict', digest: first.digest }
    expect(outcomes).toEqual([expect.objectContaining({ state: 'mined' }), conflict])
    expect(await executor.relay(second)).toEqual(conflict)
    expect(await executions(second)).toBe(0n)
    expect(await nonceOf(account.address)).toBe(1)
  })

  test('is served in order, each intent after its predecessor', async () => {
    const { executor } = freshLane()
    const relays = ['0', '1', '2'].map(groupNonce => intent({ group: 'agent:1', groupNonce }))
    const outcomes = await Promise.all(relays.map(relay => executor.relay(relay)))
    const blocks = outcomes.map(outcome => (outcome.state === 'mined' ? outcome.blockNumber : -1n))
    expect(new Set(blocks).size).toBe(3)
    expect(blocks).toEqual(blocks.toSorted((a, b) => Number(a - b)))
  })

  test('may queue four intents and no more', async () => {
    const { executor, account } = freshLane()
    const relays = ['0', '1', '2', '3', '4'].map(groupNonce => intent({ group: 'agent:1', groupNonce }))
    const outcomes = await Promise.all(relays.map(relay => executor.relay(relay)))
    expect(outcomes.map(({ state }) => state)).toEqual(['mined', 'mined', 'mined', 'mined', 'busy'])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('whose transactions revert three times has to wait, and others do not', async () => {
    const { executor } = freshLane()
    fault = async ({ method }, forward) => {
      if (isSend(method)) await setMood(true)
      return forward()
    }
    for (const groupNonce of ['0', '1', '2']) {
      await setMood(false)
      expect(await executor.relay(intent({ group: 'agent:1', groupNonce }))).toMatchObject({
        state: 'reverted',
        data: FORTY_TWO,
      })
    }
    fault = undefined
    await setMood(false)
    expect(await executor.relay(intent({ group: 'agent:1', groupNonce: '3' }))).toMatchObject({
      ...{ state: 'busy', why: 'reverts' },
    })
    expect(await executor.relay(intent({ group: 'agent:2' }))).toMatchObject({ state: 'mined' })
  })
})

describe('a refusal', () => {
  test('by the simulation sends nothing, is kept, and the same body is simulated anew', async () => {
    const { executor, account } = freshLane()
    const relay = intent()
    await setMood(true)
    expect(await executor.relay(relay)).toMatchObject({ state: 'rejected', data: FORTY_TWO })
    expect(sends()).toEqual([])
    expect(await nonceOf(account.address)).toBe(0)
    expect(await executor.find(relay.group, relay.digest)).toMatchObject({
      state: 'rejected',
      revertData: FORTY_TWO,
      attempts: [],
    })
    await setMood(false)
    expect(await executor.relay(relay)).toMatchObject({ state: 'mined' })
    expect(await executions(relay)).toBe(1n)
  })

  test('by the chain after a good simulation carries the revert data, and a later try may succeed', async () => {
    const { executor, account } = freshLane()
    const relay = intent()
    fault = onFirstSend(async (_, forward) => {
      await setMood(true)
      return forward()
    })
    const reverted = await executor.relay(relay)
    expect(reverted).toEqual({ state: 'reverted', hash: hashOf(reverted), data: FORTY_TWO })
    expect(await executor.relay(relay)).toEqual(reverted)
    expect(await nonceOf(account.address)).toBe(1)
    await setMood(false)
    expect(await executor.relay(relay)).toMatchObject({ state: 'mined' })
    expect(await executions(relay)).toBe(1n)
    const record = await executor.find(relay.group, relay.digest)
    expect(record?.attempts.map(({ nonce }) => nonce)).toEqual([0, 1])
  })

  test('for gas above the ceiling of the kind sends nothing', async () => {
    const { executor } = freshLane()
    const burner: Address = '0x00000000000000000000000000000000000b0e0e'
    await chain('anvil_setCode', burner, '0x5a6216e36010600a57fe5b00') // needs 1,500,000
    const outcome = await executor.relay(intent({ kind: 'ladder', call: { to: burner, data: '0x' } }))
    expect(outcome).toMatchObject({ state: 'rejected' })
    expect(sends()).toEqual([])
  })
})

describe('a node', () => {
  test('that is away before anything is signed leaves nothing behind', async () => {
    const { executor, account } = freshLane()
    const relay = intent()
    fault = lost
    expect(await executor.relay(relay)).toEqual({ state: 'unsent' })
    expect(await executor.find(relay.group, relay.digest)).toBeUndefined()
    fault = undefined
    expect(await executor.relay(relay)).toMatchObject({ state: 'mined' })
    expect(await nonceOf(account.address)).toBe(1)
  })

  test('that is away is replaced by the next one', async () => {
    const { executor } = freshLane()
    fault = ({ isSpare }, forward) => (isSpare ? forward() : lost())
    expect(await executor.relay(intent())).toMatchObject({ state: 'mined' })
  })

  test.each<[string, Fault]>([
    ['drops the request', lost],
    ['drops the answer', (_, forward) => forward().then(lost)],
    ['answers 500', async () => new Response('oops', { status: 500 })],
    ['answers 429', async () => new Response('slow down', { status: 429 })],
    [
      'limits the rate',
      async () => Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32005, message: 'rate limit exceeded' } }),
    ],
    ['takes it and hangs', (request, forward) => Promise.all([forward(), untilAborted(request.signal)]).then(lost)],
    ['hangs without taking it', request => untilAborted(request.signal)],
    ['delivers twice', (_, forward) => Promise.all([forward(), forward()]).then(([first]) => first)],
    [
      'is on another chain',
      async () =>
        Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32003, message: 'invalid chain id for signer' } }),
    ],
  ])('that %s on a send does not make it happen twice or never', async (_, onSend) => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    const relay = intent()
    fault = onFirstSend(onSend)
    await mined(executor, relay)
    expect(await executions(relay)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(2)
  })

  test('that can never take the bytes gets a transfer of nothing in their place', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    const relay = intent()
    const error = { code: -32000, message: 'intrinsic gas too low' }
    fault = onFirstSend(async () => Response.json({ jsonrpc: '2.0', id: 1, error }))
    expect(await executor.relay(relay)).toEqual({ state: 'rejected', message: error.message })
    expect(await executions(relay)).toBe(0n)
    expect(await nonceOf(account.address)).toBe(2)
    await mined(executor, relay)
  })

  test('without synchronous sends is polled', async () => {
    const { executor } = freshLane()
    fault = ({ method }, forward) =>
      method === 'eth_sendRawTransactionSync'
        ? Promise.resolve(
            Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'Method not found' } }),
          )
        : forward()
    expect(await executor.relay(intent())).toMatchObject({ state: 'mined' })
    requests = []
    expect(await executor.relay(intent())).toMatchObject({ state: 'mined' })
    expect(sends()).toEqual(['eth_sendRawTransaction'])
  })

  test('that answers a send only when it is mined gets several again at once, in the order of their nonces', async () => {
    const { executor } = freshLane()
    await mined(executor, intent())
    let isCut = true
    const held: Hex[] = []
    const released = Promise.withResolvers<void>()
    fault = async ({ method, params }, forward) => {
      if (!isSend(method)) return forward()
      if (isCut) return lost()
      held.push(params[0] as Hex)
      await released.promise
      return forward()
    }
    const relays = Array.from({ length: 8 }, () => intent())
    await Promise.all(relays.map(relay => executor.relay(relay)))
    isCut = false
    const running = relays.map(relay => mined(executor, relay))
    await vi.waitFor(() => expect(held.length).toBeGreaterThanOrEqual(6), { timeout: 5_000 })
    expect(held.slice(0, 6).map(raw => parseTransaction(raw).nonce)).toEqual([1, 2, 3, 4, 5, 6])
    released.resolve()
    await Promise.all(running)
    expect(await Promise.all(relays.map(executions))).toEqual(relays.map(() => 1n))
  })

  test('that loses the lowest of many gets it again before it has refused all the others', async () => {
    const { executor } = freshLane()
    await mined(executor, intent())
    let isCut = true
    const nonces: number[] = []
    const taken = Promise.withResolvers<boolean>()
    fault = async ({ method, params }, forward) => {
      if (!isSend(method)) return forward()
      if (isCut) return lost()
      const { nonce = 0 } = parseTransaction(params[0] as Hex)
      nonces.push(nonce)
      if (nonce === 1 && nonces.indexOf(1) === nonces.length - 1) return lost()
      if (nonce === 1) taken.resolve(true)
      // A sequencer holds a future nonce for a second.
      if (await Promise.race([taken.promise, scheduler.wait(1_000)])) return forward()
      const error = { code: -32000, message: `nonce too high: address 0x00, tx: ${nonce} state: 1` }
      return Response.json({ jsonrpc: '2.0', id: 1, error })
    }
    const relays = Array.from({ length: 16 }, () => intent())
    await Promise.all(relays.map(relay => executor.relay(relay)))
    isCut = false
    await Promise.all(relays.map(relay => mined(executor, relay)))
    expect(nonces.indexOf(1, nonces.indexOf(1) + 1)).toBeLessThan(14)
    expect(await Promise.all(relays.map(executions))).toEqual(relays.map(() => 1n))
  })

  test('that refuses bytes for a reason nobody knows gets a transfer of nothing in their place, and the lane goes on', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    const [cursed, other] = [intent(), intent()]
    const error = { code: -32000, message: 'the moon is in the wrong house' }
    fault = async ({ method, params }, forward) =>
      isSend(method) && parseTransaction(params[0] as Hex).data === cursed.call.data
        ? Response.json({ jsonrpc: '2.0', id: 1, error })
        : forward()
    const running = executor.relay(cursed)
    await firstSend()
    await mined(executor, other)
    await running
    await vi.waitFor(
      async () => expect(await executor.find(cursed.group, cursed.digest)).toMatchObject({ state: 'rejected' }),
      { timeout: 10_000 },
    )
    expect(await Promise.all([cursed, other].map(executions))).toEqual([0n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })

  test('that has been handed a transaction shows its intent as sent', async () => {
    const { executor } = freshLane()
    isMining = false
    const relay = intent()
    const running = executor.relay(relay)
    await firstSend()
    await vi.waitFor(async () =>
      expect(await executor.find(relay.group, relay.digest)).toMatchObject({ state: 'sent' }),
    )
    isMining = true
    await running
  })

  test('that refuses future nonces gets the missing one first', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    // The first send is lost; until it has been sent again, the node behaves as a sequencer and refuses its successors.
    const sent: string[] = []
    fault = async ({ method }, forward) => {
      if (!isSend(method)) return forward()
      sent.push(method)
      if (sent.length === 1) return untilAborted(AbortSignal.timeout(400))
      const isMissing =
        (await nonceOf(account.address)) === 1 && !(await chain<{ pending: object }>('txpool_content')).pending
      if (isMissing)
        return Response.json({
          jsonrpc: '2.0',
          id: 1,
          error: { code: -32000, message: 'nonce too high: address 0x00, tx: 2 state: 1' },
        })
      return forward()
    }
    const relays = [intent(), intent(), intent()]
    await Promise.all(relays.map(relay => mined(executor, relay)))
    expect(await Promise.all(relays.map(executions))).toEqual([1n, 1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('is never named in an answer or a log, and neither is a key', async () => {
    const output: string[] = []
    const spies = (['error', 'warn', 'log', 'info', 'debug'] as const).map(level =>
      vi.spyOn(console, level).mockImplementation((...texts) => void output.push(texts.map(String).join(' '))),
    )
    const { executor } = freshLane()
    const relay = intent()
    const url = `${inject('laneRpcUrl')}/${inject('laneSpare')}`
    fault = async () =>
      Response.json({
        jsonrpc: '2.0',
        id: 1,
        error: { code: 3, message: `execution reverted at ${url} ${inject('laneKeys')[0]}` },
      })
    const answers = [await executor.relay(relay)]
    fault = async ({ method }, forward) => {
      if (isSend(method)) throw new Error(`cannot reach ${url}`)
      return forward()
    }
    answers.push(await executor.relay(intent()))
    const record = await executor.find(relay.group, relay.digest)
    fault = undefined
    for (const spy of spies) spy.mockRestore()
    const told = JSON.stringify([answers, record, output], (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
    expect(told).not.toContain(inject('laneSpare'))
    expect(told).not.toContain(inject('laneRpcUrl'))
    for (const key of inject('laneKeys')) expect(told).not.toContain(key.slice(2))
  })
})

describe('a lane that dies', () => {
  test('in flight answers the outcome when it is asked again', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    requests = []
    isMining = false
    const relays = [intent(), intent(), intent()]
    const running = relays.map(relay => executor.relay(relay))
    await vi.waitFor(() => expect(sends()).toHaveLength(3), { timeout: 5_000, interval: 10 })
    await abortAllDurableObjects()
    await Promise.all(running)
    isMining = true
    const outcomes = await Promise.all(relays.map(relay => mined(executor, relay)))
    expect(await Promise.all(relays.map(executions))).toEqual([1n, 1n, 1n])
    expect(new Set(outcomes.map(({ hash }) => hash)).size).toBe(3)
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('after it signed and before a node had the bytes sends them by itself', async () => {
    const { executor, account, stub } = freshLane()
    await mined(executor, intent())
    const relay = intent()
    fault = ({ method }, forward) => (isSend(method) ? lost() : forward())
    expect(await executor.relay(relay)).toMatchObject({ state: 'unknown' })
    await evictDurableObject(stub)
    fault = undefined
    await runDurableObjectAlarm(stub)
    await vi.waitFor(async () => expect(await executions(relay)).toBe(1n), { timeout: 5_000 })
    expect(await nonceOf(account.address)).toBe(2)
  })
})

describe('the chain', () => {
  test('that makes no blocks leaves the outcome unknown until it does', async () => {
    const { executor } = freshLane()
    const relay = intent()
    isMining = false
    const unknown = await executor.relay(relay)
    expect(unknown).toEqual({ state: 'unknown', hash: hashOf(unknown) })
    expect(await executor.status()).toMatchObject([{ address: executor.address, pending: 1 }])
    isMining = true
    expect((await mined(executor, relay)).hash).toBe(hashOf(unknown))
    expect(await executions(relay)).toBe(1n)
    expect(await executor.status()).toMatchObject([{ pending: 0, oldestPendingSeconds: 0 }])
  })

  test('that stands still for long takes in nothing more', async () => {
    const { executor } = freshLane()
    isMining = false
    const stuck = intent()
    await executor.relay(stuck)
    await vi.waitFor(
      async () => expect(await executor.relay(intent())).toEqual({ state: 'busy', retryAfterSeconds: 1 }),
      { timeout: 15_000 },
    )
    isMining = true
    await mined(executor, stuck)
    await mined(executor, intent())
  })

  test('that drops a transaction gets the same bytes again, and what waits behind them is mined too', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    isMining = false
    requests = []
    const first = intent()
    const firstRun = executor.relay(first)
    await firstSend()
    const { hash } = (await executor.find(first.group, first.digest))?.attempts[0] ?? { hash: '0x' as Hex }
    await vi.waitFor(async () => expect(await poolHolds(hash)).toBe(true))
    const others = [intent(), intent()]
    const running = [firstRun, ...others.map(relay => executor.relay(relay))]
    await vi.waitFor(() => expect(sends().length).toBeGreaterThanOrEqual(3), { timeout: 5_000, interval: 10 })
    await chain('anvil_dropTransaction', hash)
    isMining = true
    await Promise.all(running)
    expect((await mined(executor, first)).hash).toBe(hash)
    for (const relay of others) await mined(executor, relay)
    expect(await Promise.all([first, ...others].map(executions))).toEqual([1n, 1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('that mined a foreign transaction of the same key makes the lane sign anew', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    await foreignTransaction(account, 1)
    const relays = [intent(), intent()]
    await Promise.all(relays.map(relay => mined(executor, relay)))
    expect(await Promise.all(relays.map(executions))).toEqual([1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('that is another one under the same id is served from an empty journal', async () => {
    const { executor, account } = freshLane()
    const relay = intent()
    await mined(executor, relay)
    await abortAllDurableObjects()
    const { hash } = await chain<{ hash: Hex }>('eth_getBlockByNumber', '0x0', false)
    fault = async ({ method }, forward) => {
      const response = await forward()
      if (!method.includes('eth_getBlockByNumber')) return response
      return new Response((await response.text()).replaceAll(hash, random()))
    }
    await executor.status()
    expect(await executor.find(relay.group, relay.digest)).toBeUndefined()
    fault = undefined
    await mined(executor, intent())
    expect(await nonceOf(account.address)).toBe(2)
  })

  test('that loses blocks gets their transactions again', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    const relay = intent()
    const { hash } = await mined(executor, relay)
    isMining = false
    await chain('anvil_reorg', 2, [])
    expect(await chain('eth_getTransactionReceipt', hash)).toBeNull()
    isMining = true
    await vi.waitFor(async () => expect(await chain('eth_getTransactionReceipt', hash)).not.toBeNull(), {
      timeout: 20_000,
      interval: 100,
    })
    expect(await executions(relay)).toBe(1n)
    expect((await mined(executor, relay)).hash).toBe(hash)
    await vi.waitFor(async () => expect(await nonceOf(account.address)).toBe(2), { timeout: 10_000 })
  })

  test('that goes on is watched every few seconds until a transaction is final', async () => {
    const { executor, stub } = freshLane()
    await mined(executor, intent())
    for (let round = 0; round < 5; round++) {
      await mine()
      await runDurableObjectAlarm(stub)
    }
    const alarm = await runInDurableObject(stub, (_, { storage }) => storage.getAlarm())
    expect((alarm ?? 0) - Date.now()).toBeLessThan(3_000)
  })

  test('whose base fee outgrows the bid gets a higher one at the same nonce', async () => {
    const { executor, account, stub } = freshLane()
    await mined(executor, intent())
    isMining = false
    requests = []
    const relay = intent()
    const running = executor.relay(relay)
    await firstSend()
    await chain('anvil_setNextBlockBaseFeePerGas', numberToHex(10n ** 12n))
    isMining = true
    await running
    const { hash } = await mined(executor, relay)
    expect(await executions(relay)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(2)

    const attempts = (await executor.find(relay.group, relay.digest))?.attempts ?? []
    expect(attempts.at(-1)).toMatchObject({ hash, purpose: 'call', state: 'mined' })
    for (const { hash: replaced } of attempts.slice(0, -1))
      expect(await stub.findTransaction(replaced)).toMatchObject({ isPending: false, replacedBy: hash })
    expect(attempts.length).toBeGreaterThan(1)
    expect(await stub.findTransaction(hash)).not.toHaveProperty('replacedBy')
  })

  test('that reaches the deadline first executes nothing any more, and the nonce is used up', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    const { timestamp } = await chain<{ timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
    const [expiring, lasting] = [intent({ deadline: hexToBigInt(timestamp) + 60n }), intent()]
    let isCut = true
    fault = ({ method }, forward) => (isCut && isSend(method) ? lost() : forward())
    await Promise.all([executor.relay(expiring), executor.relay(lasting)])
    await chain('evm_increaseTime', 120)
    await mine()
    // The cancelling transfer is the second attempt of the intent.
    await vi.waitFor(
      async () => expect((await executor.find(expiring.group, expiring.digest))?.attempts).toHaveLength(2),
      { timeout: 10_000 },
    )
    isCut = false
    await mined(executor, lasting)
    await vi.waitFor(
      async () =>
        expect(await executor.find(expiring.group, expiring.digest)).toMatchObject({
          state: 'rejected',
          reason: expect.stringContaining('deadline'),
          attempts: [{ state: 'replaced' }, { purpose: 'cancel', state: 'mined' }],
        }),
      { timeout: 10_000 },
    )
    expect(await Promise.all([expiring, lasting].map(executions))).toEqual([0n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })
})

describe('an account', () => {
  test('that cannot pay uses no nonce, and works again when it can', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    await chain('anvil_setBalance', account.address, '0x0')
    const relay = intent()
    expect(await executor.relay(relay)).toEqual({ state: 'unfunded' })
    expect(await executor.status()).toMatchObject([{ pausedFor: 'funds', pending: 0 }])
    expect(await nonceOf(account.address)).toBe(1)
    await chain('anvil_setBalance', account.address, numberToHex(10n ** 18n))
    await mined(executor, relay)
    expect(await executions(relay)).toBe(1n)
    expect(await executor.status()).toEqual([expect.not.objectContaining({ pausedFor: expect.anything() })])
  })

  test('that can pay again gets its open transactions through at once', async () => {
    const { executor, account } = freshLane()
    await mined(executor, intent())
    let isPoor = true
    const error = { code: -32003, message: 'Insufficient funds for gas * price + value' }
    const times: number[] = []
    fault = async ({ method }, forward) => {
      if (!isSend(method) || !isPoor) return forward()
      times.push(Date.now())
      return Response.json({ jsonrpc: '2.0', id: 1, error })
    }
    const relay = intent()
    await executor.relay(relay)
    // By now it waits for long between two tries.
    await vi.waitFor(() => expect(times.length).toBeGreaterThanOrEqual(4), { timeout: 15_000 })
    isPoor = false
    await chain('anvil_setBalance', account.address, numberToHex(10n ** 19n))
    await vi.waitFor(async () => expect(await executions(relay)).toBe(1n), { timeout: 3_000 })
  })

  test('that somebody else uses too takes in nothing more, and what is open is brought to its end', async () => {
    const { executor, account, stub } = freshLane()
    await mined(executor, intent())
    await foreignTransaction(account, 1)
    await mined(executor, intent())
    await foreignTransaction(account, 3)
    const relay = intent()
    await mined(executor, relay)
    expect(await executor.relay(intent())).toEqual({ state: 'paused', retryAfterSeconds: expect.any(Number) })
    expect(await executor.status()).toMatchObject([{ pausedFor: 'shared key', pending: 0 }])
    await evictDurableObject(stub)
    expect(await executor.relay(intent())).toMatchObject({ state: 'paused' })
    expect(await executor.relay(relay)).toMatchObject({ state: 'mined' })
  })

  test('that is one of several serves its groups alone', async () => {
    const [one, two] = [keys.pop() as Hex, keys.pop() as Hex]
    const executor = createExecutor(env.EXECUTOR_LANE, [one, two], { inclusionTimeoutMs: 3_000 })
    const relays = Array.from({ length: 16 }, (_, i) => intent({ group: `agent:${i}` }))
    for (const outcome of await Promise.all(relays.map(relay => executor.relay(relay))))
      expect(outcome.state).toBe('mined')
    const counts = [one, two].map(key => {
      const { address } = privateKeyToAccount(key)
      return { address, count: relays.filter(({ group }) => executor.addressOf(group) === address).length }
    })
    for (const { address, count } of counts) {
      expect(count).toBeGreaterThan(0)
      expect(await nonceOf(address)).toBe(count)
    }
  })
})
