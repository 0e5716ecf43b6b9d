import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test'
import { type Hex, parseTransaction } from 'viem'
import { describe, expect, inject, test, vi } from 'vitest'
import {
  chain,
  errorResponse,
  executionsOf,
  firstSend,
  isSend,
  losesConnection,
  type NodeFault,
  newRequest,
  node,
  nonceOf,
  onFirstSendOf,
  onSendsOf,
  relayUntilKnown,
  relayUntilMined,
  sends,
  useLanes,
  waitForFlag,
  withNonce,
} from '../support/lanes.ts'

const { newLane } = useLanes('lane-node-faults')

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

describe('a node', () => {
  test('that is unreachable before anything is signed leaves no trace of the intent', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    node.fault = losesConnection
    expect(await executor.relay(request)).toEqual({ state: 'unsent' })
    expect(await executor.find(request.by, request.digest)).toBeUndefined()
    node.fault = undefined
    expect(await relayUntilKnown(executor, request)).toMatchObject({ state: 'mined' })
    expect(await nonceOf(account.address)).toBe(1)
  })

  test.each(['0x', 'pending', 7, '0x7a1200'])('that returns the nonce %j once does not stop the lane', async nonce => {
    const { executor, account } = newLane()
    let isOver = false
    node.fault = (sent, forward) => {
      if (isOver || !sent.method.includes('eth_getTransactionCount')) return forward()
      isOver = true
      return withNonce(nonce, sent, forward)
    }
    const requests = [newRequest(), newRequest(), newRequest()]
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(isOver).toBe(true)
    expect(await Promise.all(requests.map(executionsOf))).toEqual([1n, 1n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })

  test('that is unreachable is replaced by the next one', async () => {
    const { executor } = newLane()
    node.fault = ({ isSpare }, forward) => (isSpare ? forward() : losesConnection())
    expect(await relayUntilKnown(executor, newRequest())).toMatchObject({ state: 'mined' })
  })

  test.each<[string, NodeFault]>([
    ['drops the request', losesConnection],
    ['drops the response', (_, forward) => forward().then(losesConnection)],
    ['responds with status 500', async () => new Response('oops', { status: 500 })],
    ['responds with status 429', async () => new Response('slow down', { status: 429 })],
    ['limits the rate', async () => errorResponse(-32005, 'rate limit exceeded')],
    [
      'accepts the transaction and hangs',
      (request, forward) => Promise.all([forward(), untilAborted(request.signal)]).then(losesConnection),
    ],
    ['hangs before it accepts the transaction', request => untilAborted(request.signal)],
    ['receives the request twice', (_, forward) => Promise.all([forward(), forward()]).then(([first]) => first)],
    ['is on another chain', async () => errorResponse(-32003, 'invalid chain id for signer')],
  ])('that %s on a send does not prevent the execution or repeat it', async (_, fault) => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    node.fault = onFirstSendOf(request, fault)
    await relayUntilMined(executor, request)
    expect(await executionsOf(request)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(2)
  })

  test('without synchronous sends is polled', async () => {
    const { executor } = newLane()
    node.fault = ({ method }, forward) =>
      method === 'eth_sendRawTransactionSync' ? Promise.resolve(errorResponse(-32601, 'Method not found')) : forward()
    expect(await relayUntilKnown(executor, newRequest())).toMatchObject({ state: 'mined' })
    node.requests = []
    expect(await relayUntilKnown(executor, newRequest())).toMatchObject({ state: 'mined' })
    expect(sends()).toEqual(['eth_sendRawTransaction'])
  })

  test('that shows receipts late does not make the lane sign again, as if others had used its nonce', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    let isLate = true
    let passes = 0
    node.fault = async ({ method }, forward) => {
      if (!isLate || !/Receipt|Sync/.test(method)) return forward()
      if (method === 'batch eth_getTransactionCount eth_getTransactionReceipt') passes++
      if (isSend(method)) return errorResponse(-32601, 'the method does not exist')
      const replies: { result?: unknown }[] = [await (await forward()).json<object>()].flat()
      const late = replies.map(reply => (typeof reply.result === 'string' ? reply : { ...reply, result: null }))
      return Response.json(method.startsWith('batch') ? late : late[0])
    }
    const request = newRequest()
    void executor.relay(request)
    await vi.waitFor(() => expect(passes).toBeGreaterThan(3), { timeout: 240_000 })
    isLate = false
    await relayUntilMined(executor, request)
    expect(await executionsOf(request)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(2)
  })

  test('that has received a transaction makes its intent sent', async () => {
    const { executor } = newLane()
    node.isMining = false
    const request = newRequest()
    const running = executor.relay(request)
    await firstSend()
    await vi.waitFor(
      async () => expect(await executor.find(request.by, request.digest)).toMatchObject({ state: 'sent' }),
      { timeout: 120_000 },
    )
    node.isMining = true
    await running
  })

  test('appears in no response and no log, and neither does a key', async () => {
    const output: string[] = []
    const spies = (['error', 'warn', 'log', 'info', 'debug'] as const).map(level =>
      vi.spyOn(console, level).mockImplementation((...texts) => void output.push(texts.map(String).join(' '))),
    )
    const { executor } = newLane()
    const request = newRequest()
    const url = `${inject('laneRpcUrl')}/${inject('laneSpare')}`
    node.fault = async () => errorResponse(3, `execution reverted at ${url} ${inject('laneKeys')[0]}`)
    const outcomes = [await executor.relay(request)]
    node.fault = async ({ method }, forward) => {
      if (isSend(method)) throw new Error(`cannot reach ${url}`)
      return forward()
    }
    outcomes.push(await executor.relay(newRequest()))
    const record = await executor.find(request.by, request.digest)
    node.fault = undefined
    for (const spy of spies) spy.mockRestore()
    const text = JSON.stringify([outcomes, record, output], (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
    expect(text).not.toContain(inject('laneSpare'))
    expect(text).not.toContain(inject('laneRpcUrl'))
    for (const key of inject('laneKeys')) expect(text).not.toContain(key.slice(2))
  })
})

describe('bytes that a node', () => {
  test('can never accept are replaced by a zero-value transfer', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    const message = 'intrinsic gas too low'
    node.fault = onFirstSendOf(request, async () => errorResponse(-32000, message))
    expect(await relayUntilKnown(executor, request)).toEqual({ state: 'rejected', message })
    expect(await executionsOf(request)).toBe(0n)
    expect(await nonceOf(account.address)).toBe(2)
    await relayUntilMined(executor, request)
  })

  test('rejects for an unknown reason are replaced by a zero-value transfer, so the lane can proceed', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const [cursed, other] = [newRequest(), newRequest()]
    node.fault = onSendsOf(cursed, async () => errorResponse(-32000, 'the moon is in the wrong house'))
    const running = executor.relay(cursed)
    await firstSend()
    await relayUntilMined(executor, other)
    await running
    await vi.waitFor(
      async () => expect(await executor.find(cursed.by, cursed.digest)).toMatchObject({ state: 'rejected' }),
      { timeout: 120_000 },
    )
    expect(await Promise.all([cursed, other].map(executionsOf))).toEqual([0n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })
})

describe('transactions are resent', () => {
  test('in batches and at once by a lane that starts with them in its journal', async () => {
    const { executor, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    const sendsOf = (method: string) => method.split('eth_sendRawTransaction').length - 1
    node.fault = ({ method }, forward) => (sendsOf(method) > 0 ? losesConnection() : forward())
    const requests = Array.from({ length: 12 }, () => newRequest())
    const running = requests.map(request => executor.relay(request))
    await vi.waitFor(async () => expect(await executor.status()).toMatchObject([{ pending: 12 }]), {
      timeout: 120_000,
      interval: 10,
    })
    await abortAllDurableObjects()
    await Promise.all(running)
    node.fault = undefined
    node.requests = []
    await runDurableObjectAlarm(stub)
    await vi.waitFor(async () => expect(await nonceOf(executor.address)).toBe(13), { timeout: 120_000 })
    const sends = node.requests.map(sendsOf).filter(count => count > 0)
    expect(sends.reduce((sum, count) => sum + count, 0)).toBe(12)
    // The node has just dropped batches, so one of the three is sent one by one.
    expect(sends.filter(count => count === 4).length).toBeGreaterThanOrEqual(2)
  })

  test('several in parallel and in the order of their nonces, if a node takes no batches and responds after inclusion', async () => {
    const { executor } = newLane()
    await relayUntilMined(executor, newRequest())
    let isCut = true
    /** Nonces in the order in which they are first sent, and those whose sends the node holds at the moment. */
    const sent = new Set<number>()
    const held = new Set<number>()
    let mostHeld = 0
    let isReleased = false
    node.fault = async ({ method, params, signal }, forward) => {
      if (method.startsWith('batch eth_send')) return errorResponse(-32600, 'batch requests are not supported')
      if (!isSend(method)) return forward()
      if (isCut) return losesConnection()
      const { nonce = 0 } = parseTransaction(params[0] as Hex)
      sent.add(nonce)
      held.add(nonce)
      mostHeld = Math.max(mostHeld, held.size)
      // The lane ends a send after three seconds. Its next round sends the same bytes again, with all that are due by
      // then.
      await waitForFlag(() => isReleased || signal.aborted)
      held.delete(nonce)
      return forward()
    }
    const requests = Array.from({ length: 8 }, () => newRequest())
    await Promise.all(requests.map(request => executor.relay(request)))
    isCut = false
    const running = requests.map(request => relayUntilMined(executor, request))
    await vi.waitFor(() => expect(mostHeld).toBeGreaterThanOrEqual(6), { timeout: 120_000 })
    expect([...sent].slice(0, 6)).toEqual([1, 2, 3, 4, 5, 6])
    isReleased = true
    await Promise.all(running)
    expect(await Promise.all(requests.map(executionsOf))).toEqual(requests.map(() => 1n))
  })

  test('the lowest missing one first, before the node has rejected all the others', async () => {
    const { executor } = newLane()
    await relayUntilMined(executor, newRequest())
    let isCut = true
    const nonces: number[] = []
    let isAccepted = false
    node.fault = async ({ method, params }, forward) => {
      if (!isSend(method)) return forward()
      if (isCut) return losesConnection()
      const { nonce = 0 } = parseTransaction(params[0] as Hex)
      nonces.push(nonce)
      if (nonce === 1 && nonces.indexOf(1) === nonces.length - 1) return losesConnection()
      if (nonce === 1) isAccepted = true
      // A sequencer holds a future nonce for a second.
      for (let waits = 0; !isAccepted && waits < 100; waits++) await scheduler.wait(10)
      if (isAccepted) return forward()
      return errorResponse(-32000, `nonce too high: address 0x00, tx: ${nonce} state: 1`)
    }
    const requests = Array.from({ length: 16 }, () => newRequest())
    await Promise.all(requests.map(request => executor.relay(request)))
    isCut = false
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(nonces.indexOf(1, nonces.indexOf(1) + 1)).toBeLessThan(14)
    expect(await Promise.all(requests.map(executionsOf))).toEqual(requests.map(() => 1n))
  })

  test('the missing one first, if a node rejects future nonces', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    // The first send is lost. Until it is resent, the node rejects later nonces, as a sequencer does.
    const sent: string[] = []
    node.fault = async ({ method }, forward) => {
      if (!isSend(method)) return forward()
      sent.push(method)
      if (sent.length === 1) return untilAborted(AbortSignal.timeout(400))
      const isMissing =
        (await nonceOf(account.address)) === 1 && !(await chain<{ pending: object }>('txpool_content')).pending
      return isMissing ? errorResponse(-32000, 'nonce too high: address 0x00, tx: 2 state: 1') : forward()
    }
    const requests = [newRequest(), newRequest(), newRequest()]
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(await Promise.all(requests.map(executionsOf))).toEqual([1n, 1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })
})
