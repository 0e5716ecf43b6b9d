import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Hex, hexToBigInt, keccak256, numberToHex } from 'viem'
import { describe, expect, test, vi } from 'vitest'
import type { IntentRecord } from '../../src/executor/intent-record.ts'
import { presentIntentRecord } from '../../src/executor/present-intent.ts'
import type { RelayOutcome } from '../../src/executor/relay-types.ts'
import {
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
  onSendsOf,
  relayUntilMined,
  sendForeignTransaction,
  sends,
  useLanes,
} from '../support/lanes.ts'
import { loseAlarm } from '../support/lose-alarm.ts'

const { newLane } = useLanes('lane-chain-faults')

/** Stops mining, and replaces a block and all after it by empty ones: blocks may have followed it since. */
async function reorgFrom(blockNumber: bigint): Promise<void> {
  node.isMining = false
  await node.lastBlock
  const head = hexToBigInt(await chain<Hex>('eth_blockNumber'))
  await chain('anvil_reorg', Number(head - blockNumber) + 1, [])
}

/** Stops mining, and removes a block and all after it. The node's pool gets none of their transactions. */
async function rewindBelow(blockNumber: bigint): Promise<void> {
  node.isMining = false
  await node.lastBlock
  const head = hexToBigInt(await chain<Hex>('eth_blockNumber'))
  await chain('anvil_rollback', Number(head - blockNumber) + 1)
  await chain('anvil_dropAllTransactions')
}

const isInPool = async (hash: Hex) => (await chain<object | null>('eth_getTransactionByHash', hash)) !== null

const createNotes = () =>
  env.HISTORY.exec('CREATE TABLE IF NOT EXISTS notes (transaction_hash TEXT PRIMARY KEY, note TEXT NOT NULL)')
const noteOf = (hash: Hex) =>
  env.HISTORY.prepare('SELECT note FROM notes WHERE transaction_hash = ?').bind(hash).first<string>('note')

describe('a lane that', () => {
  test('fails unexpectedly logs the frames of the failure', async () => {
    const lines: string[] = []
    const { executor, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(line))
    await runInDurableObject(stub, (_, { storage }) => void storage.sql.exec('ALTER TABLE gas_level RENAME TO lost'))
    await runDurableObjectAlarm(stub)
    spy.mockRestore()
    await runInDurableObject(stub, (_, { storage }) => void storage.sql.exec('ALTER TABLE lost RENAME TO gas_level'))
    const failure = lines.map(line => JSON.parse(line)).find(({ event }) => event === 'lane failure')
    expect(failure).toMatchObject({ level: 'error', cause: 'Error' })
    expect(failure.frames.join()).toContain('src/executor/')
  })
})

describe('a lane that is', () => {
  test('aborted with transactions in flight returns their outcomes when they are relayed again', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    node.requests = []
    node.isMining = false
    const requests = [newRequest(), newRequest(), newRequest()]
    const running = requests.map(request => executor.relay(request))
    await vi.waitFor(() => expect(sends().length).toBeGreaterThanOrEqual(3), { timeout: 120_000, interval: 10 })
    await abortAllDurableObjects()
    await Promise.all(running)
    node.isMining = true
    const outcomes = await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(await Promise.all(requests.map(executionsOf))).toEqual([1n, 1n, 1n])
    expect(new Set(outcomes.map(({ hash }) => hash)).size).toBe(3)
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('stores the note of a transaction before any node gets it', async () => {
    await createNotes()
    const { executor } = newLane()
    const stored: (string | null)[] = []
    node.fault = async ({ method, params: [raw] }, forward) => {
      if (isSend(method)) stored.push(await noteOf(keccak256(raw as Hex)))
      return forward()
    }
    for (const note of ['Breakout', 'Pullback', 'Gap']) await relayUntilMined(executor, { ...newRequest(), note })
    expect(stored).toEqual(['Breakout', 'Pullback', 'Gap'])
  })

  test('aborted before its notes were stored stores them when it starts again, before the trade is mined', async () => {
    await createNotes()
    const { executor, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    node.isMining = false
    const request = { ...newRequest(), note: 'Breakout' }
    const hash = hashOf(await executor.relay(request))
    await expect.poll(() => noteOf(hash)).toBe('Breakout')
    await env.HISTORY.exec('DELETE FROM notes')
    await abortAllDurableObjects()
    await runDurableObjectAlarm(stub)
    await expect.poll(() => noteOf(hash)).toBe('Breakout')
    node.isMining = true
    await relayUntilMined(executor, request)
  })

  test('aborted after it signed a transaction sends it by itself', async () => {
    const { executor, account, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    node.fault = ({ method }, forward) => (isSend(method) ? losesConnection() : forward())
    expect(await executor.relay(request)).toMatchObject({ state: 'unknown' })
    await abortAllDurableObjects()
    node.fault = undefined
    await runDurableObjectAlarm(stub)
    await vi.waitFor(async () => expect(await executionsOf(request)).toBe(1n), { timeout: 120_000 })
    expect(await nonceOf(account.address)).toBe(2)
  })
})

describe('a chain', () => {
  test('without new blocks leaves the outcome unknown until it continues', async () => {
    const { executor } = newLane()
    const request = newRequest()
    node.isMining = false
    const unknown = await executor.relay(request)
    expect(unknown).toEqual({ state: 'unknown', hash: hashOf(unknown) })
    expect(await executor.status()).toMatchObject([{ address: executor.address, pending: 1 }])
    node.isMining = true
    expect((await relayUntilMined(executor, request)).hash).toBe(hashOf(unknown))
    expect(await executionsOf(request)).toBe(1n)
    expect(await executor.status()).toMatchObject([{ pending: 0, oldestPendingSeconds: 0 }])
  })

  test('without new blocks for long makes the lane accept no more intents, and log its lag once', async () => {
    const lines: string[] = []
    const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(line))
    const { executor } = newLane()
    node.isMining = false
    const stuck = newRequest()
    await executor.relay(stuck)
    let outcome: RelayOutcome
    do outcome = await executor.relay(newRequest())
    while (outcome.state === 'unknown')
    expect(outcome).toEqual({ state: 'busy', retryAfterSeconds: 1 })
    const { address } = executor
    const isLag = (line: string) => JSON.parse(line).event === 'executor lag'
    await vi.waitFor(() => expect(lines.filter(isLag)).toHaveLength(1), { timeout: 120_000 })
    spy.mockRestore()
    expect(JSON.parse(lines.find(isLag) ?? '')).toMatchObject({ executor: address, pendingSeconds: expect.any(Number) })
    node.isMining = true
    await relayUntilMined(executor, stuck)
    await relayUntilMined(executor, newRequest())
  })

  test('that drops a transaction gets the same bytes again, and those after it are mined too', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    node.isMining = false
    node.requests = []
    const first = newRequest()
    const firstRelay = executor.relay(first)
    await firstSend()
    const { hash } = (await executor.find(first.by, first.digest))?.attempts[0] ?? { hash: '0x' as Hex }
    await vi.waitFor(async () => expect(await isInPool(hash)).toBe(true), { timeout: 120_000 })
    const others = [newRequest(), newRequest()]
    const running = [firstRelay, ...others.map(request => executor.relay(request))]
    await vi.waitFor(() => expect(sends().length).toBeGreaterThanOrEqual(3), { timeout: 120_000, interval: 10 })
    await chain('anvil_dropTransaction', hash)
    node.isMining = true
    await Promise.all(running)
    expect((await relayUntilMined(executor, first)).hash).toBe(hash)
    for (const request of others) await relayUntilMined(executor, request)
    expect(await Promise.all([first, ...others].map(executionsOf))).toEqual([1n, 1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('that mined a foreign transaction of the key makes the lane sign with a new nonce', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    await sendForeignTransaction(account, 1)
    const requests = [newRequest(), newRequest()]
    await Promise.all(requests.map(request => relayUntilMined(executor, request)))
    expect(await Promise.all(requests.map(executionsOf))).toEqual([1n, 1n])
    expect(await nonceOf(account.address)).toBe(4)
  })

  test('that does not show who used a nonce makes the lane sign with a new one, and nobody is blamed', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    node.fault = ({ method, params }, forward) =>
      method === 'eth_getBlockByNumber' && params[1] === true
        ? Promise.resolve(errorResponse(-32000, 'not available'))
        : forward()
    for (const nonce of [1, 3]) {
      await sendForeignTransaction(account, nonce)
      await relayUntilMined(executor, newRequest())
    }
    expect((await executor.status())[0]).not.toHaveProperty('foreignUse')
    expect(await nonceOf(account.address)).toBe(5)
  })

  test('that loses blocks in a reorg gets their transactions again', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await reorgFrom(blockNumber)
    expect(await chain('eth_getTransactionReceipt', hash)).toBeNull()
    node.isMining = true
    await vi.waitFor(async () => expect(await chain('eth_getTransactionReceipt', hash)).not.toBeNull(), {
      timeout: 120_000,
      interval: 100,
    })
    expect(await executionsOf(request)).toBe(1n)
    expect((await relayUntilMined(executor, request)).hash).toBe(hash)
    await vi.waitFor(async () => expect(await nonceOf(account.address)).toBe(2), { timeout: 120_000 })
  })

  test('that is rewound gets lost transactions again within two seconds of the index noticing, with no block made since', async () => {
    const { executor, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await mineBlock()
    await rewindBelow(blockNumber)
    expect(await isInPool(hash)).toBe(false)
    const noticedAt = Date.now()
    await stub.reportReorg(Number(blockNumber) - 1)
    await vi.waitFor(async () => expect(await isInPool(hash)).toBe(true), { timeout: 120_000, interval: 20 })
    expect(Date.now() - noticedAt).toBeLessThan(2_000)
    expect(await executor.find(request.by, request.digest)).toMatchObject({ state: 'sent' })
    node.isMining = true
    expect((await relayUntilMined(executor, request)).hash).toBe(hash)
    expect(await executionsOf(request)).toBe(1n)
  })

  test('that is rewound gets lost transactions again within seconds of the lane seeing a head below them', async () => {
    const { executor } = newLane()
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await rewindBelow(blockNumber)
    const seenAt = Date.now()
    await executor.relay(newRequest())
    await vi.waitFor(async () => expect(await isInPool(hash)).toBe(true), { timeout: 120_000, interval: 20 })
    expect(Date.now() - seenAt).toBeLessThan(10_000)
    node.isMining = true
    await relayUntilMined(executor, request)
    expect(await executionsOf(request)).toBe(1n)
  })

  test('that is rewound gets a lost transaction again when its body is repeated, before it has grown as far again', async () => {
    const { executor } = newLane()
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await rewindBelow(blockNumber)
    const repeated = executor.relay(request)
    await vi.waitFor(async () => expect(await isInPool(hash)).toBe(true), { timeout: 120_000, interval: 20 })
    node.isMining = true
    await repeated
    expect((await relayUntilMined(executor, request)).hash).toBe(hash)
    expect(await chain('eth_getTransactionReceipt', hash)).not.toBeNull()
    expect(await executionsOf(request)).toBe(1n)
  })

  test('is checked again by a lane whose alarm was lost, once the cron trigger wakes it', async () => {
    const { executor, stub } = newLane()
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await loseAlarm(stub)
    await reorgFrom(blockNumber)
    node.isMining = true
    await stub.wake()
    await vi.waitFor(async () => expect(await chain('eth_getTransactionReceipt', hash)).not.toBeNull(), {
      timeout: 120_000,
      interval: 100,
    })
    expect(await executionsOf(request)).toBe(1n)
  })

  test('that loses blocks while a lane has no alarm gets their transactions again once the lane is asked', async () => {
    const { executor, stub } = newLane()
    const request = newRequest()
    const { hash, blockNumber } = await relayUntilMined(executor, request)
    await runInDurableObject(stub, (_, { storage }) => storage.deleteAlarm())
    await evictDurableObject(stub)
    await reorgFrom(blockNumber)
    node.isMining = true
    await executor.status()
    await vi.waitFor(async () => expect(await chain('eth_getTransactionReceipt', hash)).not.toBeNull(), {
      timeout: 120_000,
      interval: 100,
    })
    expect(await executionsOf(request)).toBe(1n)
  })

  test('with new blocks is checked less and less often, but four times a minute, until a transaction is final', async () => {
    const { executor, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    for (let alarms = 0; alarms < 5; alarms++) {
      await mineBlock()
      await runDurableObjectAlarm(stub)
    }
    const alarm = await runInDurableObject(stub, (_, { storage }) => storage.getAlarm())
    expect((alarm ?? 0) - Date.now()).toBeLessThan(15_000)
  })

  test('whose base fee exceeds the bid gets a higher bid at the same nonce', async () => {
    const { executor, account, stub } = newLane()
    await relayUntilMined(executor, newRequest())
    node.isMining = false
    node.requests = []
    const request = newRequest()
    const running = executor.relay(request)
    await firstSend()
    await chain('anvil_setNextBlockBaseFeePerGas', numberToHex(10n ** 12n))
    node.isMining = true
    await running
    const { hash } = await relayUntilMined(executor, request)
    expect(await executionsOf(request)).toBe(1n)
    expect(await nonceOf(account.address)).toBe(2)

    const attempts = (await executor.find(request.by, request.digest))?.attempts ?? []
    expect(attempts.at(-1)).toMatchObject({ hash, purpose: 'call', state: 'mined' })
    for (const { hash: replaced } of attempts.slice(0, -1))
      expect(await stub.findTransaction(replaced)).toMatchObject({ isPending: false, replacedBy: hash })
    expect(attempts.length).toBeGreaterThan(1)
    expect(await stub.findTransaction(hash)).not.toHaveProperty('replacedBy')
  })

  test('whose sequencer filters a transaction without a trace ends its intent as dropped, and frees the nonce', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const [filtered, next] = [newRequest(), newRequest()]
    node.fault = onSendsOf(filtered, async ({ params: [raw] }) =>
      Response.json({ jsonrpc: '2.0', id: 1, result: keccak256(raw as Hex) }),
    )
    expect(await executor.relay(filtered)).toMatchObject({ state: 'unknown' })
    const found = () => executor.find(filtered.by, filtered.digest)
    await vi.waitFor(async () => expect(await found()).toMatchObject({ state: 'rejected' }), { timeout: 120_000 })
    const record = await found()
    expect(presentIntentRecord({ ...(record as IntentRecord), kind: 'open' })).toMatchObject({
      state: 'dropped',
      refusal: { code: 'TRANSACTION_DROPPED' },
      attempts: [
        { purpose: 'call', state: 'replaced' },
        { purpose: 'cancel', state: 'mined' },
      ],
    })
    await relayUntilMined(executor, next)
    expect(await Promise.all([filtered, next].map(executionsOf))).toEqual([0n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })

  test('that passes the deadline first does not execute the intent, and its nonce is filled', async () => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const { timestamp } = await chain<{ timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
    const [expiring, lasting] = [newRequest({ deadline: hexToBigInt(timestamp) + 60n }), newRequest()]
    let isCut = true
    node.fault = ({ method }, forward) => (isCut && isSend(method) ? losesConnection() : forward())
    await Promise.all([executor.relay(expiring), executor.relay(lasting)])
    await chain('evm_increaseTime', 120)
    await mineBlock()
    // A slow machine may replace a cancellation too.
    const attempts = async () => (await executor.find(expiring.by, expiring.digest))?.attempts.length
    await vi.waitFor(async () => expect(await attempts()).toBeGreaterThan(1), { timeout: 120_000 })
    isCut = false
    await relayUntilMined(executor, lasting)
    await vi.waitFor(
      async () =>
        expect(await executor.find(expiring.by, expiring.digest)).toMatchObject({
          state: 'rejected',
          reason: expect.stringContaining('deadline'),
          attempts: expect.arrayContaining([
            expect.objectContaining({ purpose: 'call', state: 'replaced' }),
            expect.objectContaining({ purpose: 'cancel', state: 'mined' }),
          ]),
        }),
      { timeout: 120_000 },
    )
    expect(await Promise.all([expiring, lasting].map(executionsOf))).toEqual([0n, 1n])
    expect(await nonceOf(account.address)).toBe(3)
  })
})
