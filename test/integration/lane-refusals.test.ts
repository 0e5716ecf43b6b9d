import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type Hex, parseTransaction } from 'viem'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import {
  chain,
  errorResponse,
  executionsOf,
  hashOf,
  isSend,
  type NodeFault,
  newRequest,
  node,
  nonceOf,
  onFirstSendOf,
  relayUntilKnown,
  relayUntilMined,
  useLanes,
} from '../support/lanes.ts'

// The words are those of geth 1.17.10: core/txpool, core/error.go and internal/ethapi/api.go.

const { newLane } = useLanes('lane-refusals')

const GWEI = 10n ** 9n
const SOON = { timeout: 120_000 }

type Logged = { event: string; message: string }
let logged: Logged[] = []
const refusals = () => logged.filter(({ event }) => event === 'send refused')
beforeEach(() => {
  logged = []
  const spy = vi.spyOn(console, 'error').mockImplementation(line => void logged.push(JSON.parse(line)))
  return () => spy.mockRestore()
})

type Transaction = ReturnType<typeof parseTransaction>
const tipOf = ({ maxPriorityFeePerGas = 0n }: Transaction) => maxPriorityFeePerGas

/** Refuses each transaction for which `words` returns some, and batches of sends. */
const refuses =
  (words: (transaction: Transaction) => string | undefined): NodeFault =>
  async ({ method, params }, forward) => {
    if (method.startsWith('batch eth_send')) return errorResponse(-32600, 'batch requests are not supported')
    const refusal = isSend(method) ? words(parseTransaction(params[0] as Hex)) : undefined
    return refusal === undefined ? forward() : errorResponse(-32000, refusal)
  }

/** Refuses priority fees as a geth does whose pool asks for at least this much. */
const asksFor = (minimum: bigint) =>
  refuses(transaction =>
    tipOf(transaction) < minimum
      ? `transaction gas price below minimum: gas tip cap ${tipOf(transaction)}, minimum needed ${minimum}`
      : undefined,
  )

const transactionOf = (hash: Hex) => chain<{ maxPriorityFeePerGas: Hex }>('eth_getTransactionByHash', hash)

describe('a node that refuses a transaction', () => {
  test.each<[string, NodeFault]>([
    ['because of its priority fee', asksFor(1n)],
    [
      'for a reason that nobody knows',
      refuses(transaction => (tipOf(transaction) === 0n ? 'the moon is in the wrong house' : undefined)),
    ],
  ])('%s gets it with the fee that it suggests, and its words are logged once', async (_, fault) => {
    const { executor, account } = newLane()
    node.fault = fault
    const [first, second] = [newRequest(), newRequest()]
    const outcome = await relayUntilMined(executor, first)
    const suggested = BigInt(await chain<Hex>('eth_maxPriorityFeePerGas'))
    expect(BigInt((await transactionOf(hashOf(outcome))).maxPriorityFeePerGas)).toBe(suggested)
    await relayUntilMined(executor, second)
    expect(await Promise.all([first, second].map(executionsOf))).toEqual([1n, 1n])
    expect(await nonceOf(account.address)).toBe(2)
    expect(refusals()).toMatchObject([{ message: expect.stringMatching(/^(transaction gas price below|the moon)/) }])
  })

  test('because it has no room for it gets the same bytes until it has', async () => {
    const all = [
      'txpool is full',
      'account limit exceeded: pooled 16 txs',
      'in-flight transaction limit reached for delegated accounts',
      'address already reserved',
      'future transaction tries to replace pending',
    ].map(words => ({ words, sends: 0, request: newRequest(), ...newLane() }))
    node.fault = refuses(({ data }) => {
      const sent = all.find(({ request }) => request.call.data === data)
      return sent && ++sent.sends <= 5 ? sent.words : undefined
    })
    await Promise.all(all.map(({ executor, request }) => relayUntilMined(executor, request)))
    for (const { executor, request, account } of all) {
      expect((await executor.find(request.by, request.digest))?.attempts).toHaveLength(1)
      expect(await executionsOf(request)).toBe(1n)
      expect(await nonceOf(account.address)).toBe(1)
    }
    expect(refusals()).toHaveLength(4) // the last one only lacks an earlier nonce
  })

  test.each([
    'transaction gas limit too high (cap: 16777216, tx: 20000000)',
    'tx fee (1.20 ether) exceeds the configured cap (1.00 ether)',
  ])('because "%s" ends the intent with its words', async message => {
    const { executor, account } = newLane()
    await relayUntilMined(executor, newRequest())
    const request = newRequest()
    node.fault = onFirstSendOf(request, async () => errorResponse(-32000, message))
    expect(await relayUntilKnown(executor, request)).toEqual({ state: 'rejected', message })
    expect(await executionsOf(request)).toBe(0n)
    expect(await nonceOf(account.address)).toBe(2)
  })

  test('again and again makes none of it sent, and the lane says why it cannot send', async () => {
    const { executor, account } = newLane()
    const request = newRequest()
    node.fault = refuses(() => 'the moon of wss://user:secret@moon.example is in the wrong house')
    const message = 'the moon of <url> is in the wrong house'
    expect(await executor.relay(request)).toEqual({ state: 'unknown' })
    expect(await executor.find(request.by, request.digest)).toMatchObject({ state: 'prepared' })
    await vi.waitFor(async () => {
      const [status] = await executor.status()
      expect(status).toMatchObject({ refusal: message })
      expect(status).not.toHaveProperty('nextNonce')
    }, SOON)
    expect(refusals()).toMatchObject([{ message }])
    // Until the lane has given up the intent, a node that takes it again would get it.
    const attempts = async () => (await executor.find(request.by, request.digest))?.attempts.length
    await vi.waitFor(async () => expect(await attempts()).toBeGreaterThan(1), SOON)
    node.fault = undefined
    expect(await relayUntilKnown(executor, request)).toEqual({ state: 'rejected', message })
    expect(await nonceOf(account.address)).toBe(1)
    await relayUntilMined(executor, request)
    expect((await executor.status())[0]).not.toHaveProperty('refusal')
  })

  test('because of a fee above its own suggestion gets it once the lane restarts with that fee', async () => {
    const { executor, account, stub } = newLane()
    const request = newRequest()
    node.fault = asksFor(5n * GWEI)
    expect(await executor.relay(request)).toEqual({ state: 'unknown' })
    await vi.waitFor(
      async () =>
        expect(await executor.status()).toMatchObject([{ refusal: expect.stringContaining('minimum needed') }]),
      SOON,
    )
    await abortAllDurableObjects()
    try {
      Object.assign(env, { PRIORITY_FEE_WEI: `${5n * GWEI}` })
      await runDurableObjectAlarm(stub)
      await vi.waitFor(async () => expect(await executionsOf(request)).toBe(1n), SOON)
    } finally {
      Reflect.deleteProperty(env, 'PRIORITY_FEE_WEI')
    }
    expect(await nonceOf(account.address)).toBe(1)
  })
})
