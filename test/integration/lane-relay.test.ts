import { evictDurableObject, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { encodeWithPrices } from '@agent-trading-service/protocol/carried-prices'
import { type Address, type Hex, hexToBigInt, numberToHex } from 'viem'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import type { RelayRequest } from '../../src/executor/relay-types.ts'
import {
  COUNTER_REVERT_DATA,
  chain,
  errorResponse,
  executionsOf,
  firstSend,
  hashOf,
  isSend,
  losesConnection,
  mineBlock,
  newRequest,
  node,
  nonceOf,
  onFirstSendOf,
  relayUntilKnown,
  relayUntilMined,
  sends,
  setReverting,
  useLanes,
  waitForFlag,
} from '../support/lanes.ts'
import { taskOf } from '../support/requesters.ts'

const { newLane } = useLanes('lane-relay')

describe('a relayed intent', () => {
  test('that brings prices brings them again with a higher bid, and its journal keeps the call without them', async () => {
    const { executor } = newLane()
    await relayUntilMined(executor, newRequest())
    node.isMining = false
    node.requests = []
    const prices = { reports: [numberToHex(7, { size: 32 })], feeds: [] }
    const request = newRequest({ prices })
    const running = executor.relay(request)
    await firstSend()
    await chain('anvil_setNextBlockBaseFeePerGas', numberToHex(10n ** 12n))
    node.isMining = true
    await running
    const { hash } = await relayUntilMined(executor, request)
    const { input } = await chain<{ input: Hex }>('eth_getTransactionByHash', hash)
    expect(input).toBe(
      encodeWithPrices(parseConfig({ ...env }).chain?.contracts.PriceOracle ?? '0x', prices, request.call.data),
    )
    const { attempts = [], call } = (await executor.find(request.by, request.digest)) ?? {}
    expect(attempts.length).toBeGreaterThan(1)
    expect(call).toEqual(request.call)
  })

  test('is mined, and its outcome has the hash and the logs of the receipt', async () => {
    const { executor } = newLane()
    const request = newRequest()
    const outcome = await relayUntilKnown(executor, request)
    const receipt = await chain<{ blockNumber: Hex; status: Hex }>('eth_getTransactionReceipt', hashOf(outcome))
    expect(outcome).toEqual({
      state: 'mined',
      hash: hashOf(outcome),
      blockNumber: hexToBigInt(receipt.blockNumber),
      logs: [{ address: request.call.to, topics: [request.digest], data: '0x' }],
    })
    expect(receipt.status).toBe('0x1')
  })

  test('costs two requests once the lane is warm', async () => {
    const { executor } = newLane()
    await executor.relay(newRequest())
    node.requests = []
    await executor.relay(newRequest())
    // The lane's alarm reads the head and the receipts of earlier intents once a second.
    const ofAlarm = (method: string) => method.startsWith('batch') || method === 'eth_getBlockByNumber'
    expect(node.requests.filter(method => !ofAlarm(method))).toEqual(['eth_call', 'eth_sendRawTransactionSync'])
  })

  test('that reverts with the gas of an earlier one is estimated again', async () => {
    const { executor } = newLane()
    await executor.relay(newRequest())
    // A contract that catches an inner failure names another reason than the lack of gas.
    node.fault = async ({ method }, forward) =>
      method === 'eth_call' ? errorResponse(3, 'execution reverted', COUNTER_REVERT_DATA) : forward()
    expect(await relayUntilKnown(executor, newRequest())).toMatchObject({ state: 'mined' })
  })

  test('is mined exactly once, also if two hundred agents relay at once', async () => {
    const { executor, account } = newLane()
    const requests = Array.from({ length: 200 }, () => newRequest())
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(await Promise.all(requests.map(executionsOf))).toEqual(requests.map(() => 1n))
    expect(await nonceOf(account.address)).toBe(200)
  })
})

describe('intents at the same time', () => {
  test('leave together: in batches of simulations and sends, with the receipts of whole blocks', async () => {
    const { executor } = newLane()
    const relayMany = async () => {
      const requests = Array.from({ length: 24 }, () => newRequest())
      await Promise.all(requests.map(request => relayUntilMined(executor, request)))
      return requests
    }
    await relayMany() // the first call is estimated
    const countOf = (name: string) => node.requests.filter(method => method.includes(name)).length
    node.requests = []
    expect(await Promise.all((await relayMany()).map(executionsOf))).toEqual(Array<bigint>(24).fill(1n))
    expect(countOf('eth_call')).toBeLessThan(24)
    // The first batches of sends are small, so that their receipts are read one by one.
    while (countOf('batch eth_sendRawTransaction') === 0 || countOf('eth_getBlockReceipts') === 0) await relayMany()
  })

  test('are found although the chain has made twenty more blocks at each look, most of them without transactions', async () => {
    const { executor } = newLane()
    await relayUntilMined(executor, newRequest())
    node.isMining = false
    const blocks = setInterval(() => void chain('anvil_mine', numberToHex(20), '0x0'), 100)
    try {
      const requests = Array.from({ length: 24 }, () => newRequest())
      await Promise.all(requests.map(request => relayUntilMined(executor, request)))
      expect(await Promise.all(requests.map(executionsOf))).toEqual(Array<bigint>(24).fill(1n))
    } finally {
      clearInterval(blocks)
    }
  })

  test('sent one by one get four receipts from their sends, and the others from their block', async () => {
    const { executor } = newLane()
    const relayOneByOne = async () => {
      node.requests = []
      node.isMining = false
      const requests = Array.from({ length: 12 }, () => newRequest())
      const relayed: Promise<unknown>[] = []
      for (const request of requests) {
        const before = node.requests.filter(isSend).length
        relayed.push(relayUntilMined(executor, request))
        await waitForFlag(() => node.requests.filter(isSend).length > before)
      }
      node.isMining = true
      await Promise.all(relayed)
      return requests
    }
    await relayUntilMined(executor, newRequest())
    const countOf = (name: string) => node.requests.filter(method => method === name).length
    do {
      expect(await Promise.all((await relayOneByOne()).map(executionsOf))).toEqual(Array<bigint>(12).fill(1n))
      // A busy machine may make two blocks between two looks, whose receipts are one batch.
      expect(node.requests.filter(method => method.includes('eth_getBlockReceipts'))).not.toEqual([])
      // On a busy machine, the first four stop waiting before the last one leaves, and others wait in their place.
    } while (countOf('eth_sendRawTransactionSync') > 4)
    expect(countOf('eth_sendRawTransactionSync')).toBe(4)
  })

  test('share a batch, but not its faults', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    node.fault = ({ method }, forward) =>
      method.startsWith('batch eth_') && !method.includes('Count') ? losesConnection() : forward()
    const requests = Array.from({ length: 24 }, () => newRequest())
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(await Promise.all(requests.map(executionsOf))).toEqual(requests.map(() => 1n))
    expect(await nonceOf(account.address)).toBe(25)
  })
})

describe('the same digest', () => {
  test('relayed ten times at once is one transaction with one outcome', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => relayUntilKnown(executor, request)))
    expect(outcomes[0]).toMatchObject({ state: 'mined' })
    expect(outcomes).toEqual(outcomes.map(() => outcomes[0]))
    expect(await relayUntilKnown(executor, request)).toEqual(outcomes[0])
    expect(await executionsOf(request)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(1)
  })

  test('is found while it is received, mined and final', async () => {
    const { executor, stub } = newLane()
    const request = newRequest({ by: taskOf(7), groupNonce: '3' })
    expect(await executor.find(request.by, request.digest)).toBeUndefined()
    let isReleased = false
    node.fault = async (_, forward) => {
      await waitForFlag(() => isReleased)
      return forward()
    }
    const running = relayUntilKnown(executor, request)
    await vi.waitFor(
      async () => expect(await executor.find(request.by, request.digest)).toMatchObject({ state: 'received' }),
      { timeout: 120_000 },
    )
    isReleased = true
    const hash = hashOf(await running)
    expect(await executor.find(request.by, request.digest)).toMatchObject({
      digest: request.digest,
      kind: 'ladder',
      group: 'task:7',
      groupNonce: '3',
      state: 'mined',
      attempts: [{ hash, nonce: 0, sentAt: expect.any(Number) }],
      blockNumber: expect.any(BigInt),
    })
    await chain('anvil_mine', numberToHex(70))
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(stub)
      expect(await executor.find(request.by, request.digest)).toMatchObject({ state: 'final' })
    }, 120_000)
  })

  test('is not final because of hundreds of blocks of one second, but once the node says so', async () => {
    const { executor, stub } = newLane()
    const request = newRequest()
    let namesFinalized = false
    node.fault = async ({ method }, forward) => {
      const response = await forward()
      if (namesFinalized || !method.startsWith('batch eth_getBlockByNumber')) return response
      const replies = (await response.json()) as object[]
      return Response.json(replies.with(0, { ...replies[0], result: null }))
    }
    await relayUntilMined(executor, request)
    await chain('anvil_mine', numberToHex(500), '0x0')
    const state = async () => (await executor.find(request.by, request.digest))?.state
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(stub)
      const passes = node.requests.filter(method => method.startsWith('batch eth_getBlockByNumber'))
      expect(passes.length).toBeGreaterThan(1)
    }, 120_000)
    expect(await state()).toBe('mined')
    namesFinalized = true
    await vi.waitFor(async () => {
      await runDurableObjectAlarm(stub)
      expect(await state()).toBe('final')
    }, 120_000)
  })

  test('is forgotten a day after its deadline', async () => {
    const { executor, stub } = newLane()
    const request = newRequest({ deadline: 1n })
    await relayUntilMined(executor, request)
    await chain('anvil_mine', numberToHex(70))
    await vi.waitFor(async () => {
      await evictDurableObject(stub) // a running lane deletes once a minute
      await runDurableObjectAlarm(stub)
      expect(await executor.find(request.by, request.digest)).toBeUndefined()
    }, 120_000)
  })
})

/**
 * Makes a block every 25 ms until the test ends: a queue of intents, each in a block of its own, waits for three
 * seconds.
 */
function mineQuickly() {
  let isOver = false
  const mining = (async () => {
    for (; !isOver; await scheduler.wait(25)) await mineBlock()
  })()
  onTestFinished(() => {
    isOver = true
    return mining
  })
}

describe('a group', () => {
  test('has one digest per nonce: another one is a conflict, at once and later', async () => {
    const { executor, account } = newLane()
    const [first, second] = [newRequest({ by: taskOf(1) }), newRequest({ by: taskOf(1) })]
    const outcomes = await Promise.all([relayUntilKnown(executor, first), relayUntilKnown(executor, second)])
    const conflict = { state: 'conflict', digest: first.digest }
    expect(outcomes).toEqual([expect.objectContaining({ state: 'mined' }), conflict])
    expect(await relayUntilKnown(executor, second)).toEqual(conflict)
    expect(await executionsOf(second)).toBe(0n)
    expect(await nonceOf(account.address)).toBe(1)
  })

  test('is relayed in order, each intent after the one before it', async () => {
    const { executor } = newLane()
    mineQuickly()
    const requests = ['0', '1', '2'].map(groupNonce => newRequest({ by: taskOf(1), groupNonce }))
    const outcomes = await Promise.all(requests.map(request => executor.relay(request)))
    const blocks = outcomes.map(outcome => (outcome.state === 'mined' ? outcome.blockNumber : -1n))
    expect(new Set(blocks).size).toBe(3)
    expect(blocks).toEqual(blocks.toSorted((a, b) => Number(a - b)))
  })

  test('queues four intents and no more', async () => {
    const { executor, account } = newLane()
    node.isMining = false
    const requests = ['0', '1', '2', '3', '4'].map(groupNonce => newRequest({ by: taskOf(1), groupNonce }))
    const outcomes = requests.map(request => executor.relay(request))
    expect(await Promise.race(outcomes)).toMatchObject({ state: 'busy' })
    node.isMining = true
    mineQuickly()
    const states = (await Promise.all(outcomes)).map(({ state }) => state)
    expect(states).toEqual(['mined', 'mined', 'mined', 'mined', 'busy'])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('must wait after three reverts, except to reduce risk, while other groups continue', async () => {
    const { executor } = newLane()
    node.fault = async ({ method }, forward) => {
      if (isSend(method)) await setReverting(true)
      return forward()
    }
    for (const groupNonce of ['0', '1', '2']) {
      await setReverting(false)
      expect(await relayUntilKnown(executor, newRequest({ by: taskOf(1), groupNonce }))).toMatchObject({
        state: 'reverted',
        data: COUNTER_REVERT_DATA,
      })
    }
    node.fault = undefined
    await setReverting(false)
    expect(await executor.relay(newRequest({ by: taskOf(1), groupNonce: '3' }))).toMatchObject({
      state: 'busy',
      why: 'reverts',
    })
    expect(await relayUntilKnown(executor, newRequest({ by: taskOf(2) }))).toMatchObject({ state: 'mined' })
    expect(
      await relayUntilKnown(executor, newRequest({ kind: 'reduce', by: taskOf(1), groupNonce: '3' })),
    ).toMatchObject({
      state: 'mined',
    })
  })
})

describe('an intent that', () => {
  test('fails in the simulation is not sent; the same digest is simulated again', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    await setReverting(true)
    expect(await executor.relay(request)).toMatchObject({ state: 'rejected', data: COUNTER_REVERT_DATA })
    expect(sends()).toEqual([])
    expect(await nonceOf(account.address)).toBe(0)
    expect(await executor.find(request.by, request.digest)).toMatchObject({
      state: 'rejected',
      revertData: COUNTER_REVERT_DATA,
      attempts: [],
    })
    await setReverting(false)
    expect(await relayUntilKnown(executor, request)).toMatchObject({ state: 'mined' })
    expect(await executionsOf(request)).toBe(1n)
  })

  test('reverts after a good simulation has the revert data, and a later try may succeed', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    node.fault = onFirstSendOf(request, async (_, forward) => {
      await setReverting(true)
      return forward()
    })
    const reverted = await relayUntilKnown(executor, request)
    expect(reverted).toEqual({ state: 'reverted', hash: hashOf(reverted), data: COUNTER_REVERT_DATA })
    expect(await relayUntilKnown(executor, request)).toEqual(reverted)
    expect(await nonceOf(account.address)).toBe(1)
    await setReverting(false)
    expect(await relayUntilKnown(executor, request)).toMatchObject({ state: 'mined' })
    expect(await executionsOf(request)).toBe(1n)
    const record = await executor.find(request.by, request.digest)
    expect(record?.attempts.map(({ nonce }) => nonce)).toEqual([0, 1])
  })

  test('needs more gas than the ceiling of its kind is not sent', async () => {
    const { executor } = newLane()
    const burner: Address = '0x00000000000000000000000000000000000b0e0e'
    await chain('anvil_setCode', burner, '0x5a6216e36010600a57fe5b00') // needs 1,500,000
    const outcome = await executor.relay(newRequest({ kind: 'ladder', call: { to: burner, data: '0x' } }))
    expect(outcome).toMatchObject({ state: 'rejected' })
    expect(sends()).toEqual([])
  })

  test('needs far more gas than others of its kind does not raise the gas limit of others', async () => {
    const { executor } = newLane()
    const burner: Address = '0x00000000000000000000000000000000000b0e0f'
    await chain('anvil_setCode', burner, '0x5a620d467010600a57fe5b00') // needs 870,000
    const relay = async (changes: Partial<RelayRequest>) =>
      hexToBigInt(
        (
          await chain<{ gas: Hex }>(
            'eth_getTransactionByHash',
            hashOf(await relayUntilKnown(executor, newRequest(changes))),
          )
        ).gas,
      )
    const { digest } = newRequest()
    expect(await relay({ kind: 'ladder', call: { to: burner, data: digest } })).toBeGreaterThan(800_000n)
    expect(await relay({ kind: 'ladder' })).toBeLessThan(100_000n)
  })

  test('finds the base fee above its bid is simulated again with a higher bid', async () => {
    const { executor } = newLane()
    await executor.relay(newRequest())
    let isRefused = false
    node.fault = async ({ method }, forward) => {
      if (method !== 'eth_call' || isRefused) return forward()
      isRefused = true
      return errorResponse(-32000, 'err: max fee per gas less than block base fee: maxFeePerGas: 1, baseFee: 2')
    }
    node.requests = []
    expect(await relayUntilKnown(executor, newRequest())).toMatchObject({ state: 'mined' })
    expect(node.requests.filter(method => method === 'eth_call')).toHaveLength(2)
  })
})
