import { env } from 'cloudflare:workers'
import { type Address, bytesToHex, type Hex, hexToBigInt, isAddressEqual, pad, parseTransaction } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, inject, vi } from 'vitest'
import { createExecutor, type Executor } from '../../src/executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../../src/executor/relay-types.ts'
import { LANES_PER_FILE, type LaneTestFile, laneTestFiles } from './lane-accounts.ts'
import { taskOf } from './requesters.ts'

/** Adds one to the slot that the call data name and logs it; reverts with 42 while slot 0 is set. */
const COUNTER: Address = '0x00000000000000000000000000000000000c0de0'
const COUNTER_CODE = '0x5f355f5415601057602a5f5260205ffd5b805460010181555f5fa100'
export const COUNTER_REVERT_DATA = pad('0x2a')
const BLOCK_INTERVAL_MS = 100
const DIGEST_BYTES = 32

/** A request to the node; those of a batch have their parameters in one list. */
type LaneRequest = { method: string; params: readonly unknown[]; isSpare: boolean; signal: AbortSignal }
/** What happens to a request of a lane to the node; `forward` sends it. */
export type NodeFault = (request: LaneRequest, forward: () => Promise<Response>) => Promise<Response>

const realFetch = globalThis.fetch

/**
 * Whether the index asks, which lanes tell of their transactions: it looks for contracts that this chain does not have.
 */
const isOfIndex = ({ method, params: [call] }: Pick<LaneRequest, 'method' | 'params'>) =>
  method === 'eth_chainId' || (method === 'eth_call' && !isAddressEqual((call as { to: Address }).to, COUNTER))

/** The node as the lanes see it, which a test can change. */
export const node: {
  fault: NodeFault | undefined
  /** The methods of the lanes' requests; a batch is `batch` and its methods. */
  requests: string[]
  /** Whether the chain makes blocks, every 100 ms. */
  isMining: boolean
  /** Resolves once the block that is being made, if any, is there: anvil loses blocks that it makes during a reorg. */
  lastBlock: Promise<unknown>
} = { fault: undefined, requests: [], isMining: true, lastBlock: Promise.resolve() }

/** Sends a request to the node itself, past the faults. */
export async function chain<Result = unknown>(method: string, ...params: unknown[]): Promise<Result> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const response = await realFetch(inject('laneRpcUrl'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
  if (error) throw new Error(`${method}: ${error.message}`)
  return result
}
export const mineBlock = () => chain('evm_mine')
export const setReverting = (isReverting: boolean) =>
  chain('anvil_setStorageAt', COUNTER, pad('0x0'), pad(isReverting ? '0x1' : '0x0'))

export const losesConnection = () => Promise.reject(new TypeError('Network connection lost.'))
export const isSend = (method: string) => /^(batch )?eth_sendRawTransaction/.test(method)
export const sends = () => node.requests.filter(isSend)
/** Resolves once a lane has sent its first transaction. */
export const firstSend = () => vi.waitFor(() => expect(sends()).not.toEqual([]), { timeout: 240_000, interval: 10 })
export const errorResponse = (code: number, message: string, data?: Hex) =>
  Response.json({ jsonrpc: '2.0', id: 1, error: { code, message, data } })

/**
 * Waits in a fault until a test sets a flag. A promise would not do: workerd may crash when a promise is resolved from
 * another Durable Object.
 */
export const waitForFlag = (isSet: () => boolean) => vi.waitUntil(isSet, { timeout: 240_000, interval: 10 })

/**
 * Applies a fault to every send of a request's transaction. Batches of sends are refused, so that the lane sends each
 * transaction alone.
 */
export const onSendsOf =
  ({ call }: RelayRequest, fault: NodeFault): NodeFault =>
  async (request, forward) => {
    if (request.method.startsWith('batch eth_send')) return errorResponse(-32600, 'batch requests are not supported')
    if (!isSend(request.method)) return forward()
    return parseTransaction(request.params[0] as Hex).data === call.data ? fault(request, forward) : forward()
  }

/** Applies a fault to the first send of a request's transaction only; an earlier transaction may still be resent. */
export function onFirstSendOf(request: RelayRequest, fault: NodeFault): NodeFault {
  let isOver = false
  return onSendsOf(request, (sent, forward) => {
    if (isOver) return forward()
    isOver = true
    return fault(sent, forward)
  })
}

/** Returns the node's response to a batch with another account nonce. Other requests are forwarded. */
export async function withNonce(nonce: unknown, { method }: LaneRequest, forward: () => Promise<Response>) {
  const response = await forward()
  const position = method.replace('batch ', '').split(' ').indexOf('eth_getTransactionCount')
  if (position < 0) return response
  const replies = (await response.json()) as object[]
  return Response.json(replies.with(position, { ...replies[position], result: nonce }))
}

/** Connects the lanes to the node for the tests of a file, which uses its own part of the accounts. */
export function useLanes(file: LaneTestFile) {
  const start = laneTestFiles.indexOf(file) * LANES_PER_FILE
  const keys = inject('laneKeys').slice(start, start + LANES_PER_FILE)
  const interval = setInterval(() => {
    if (node.isMining) node.lastBlock = mineBlock()
  }, BLOCK_INTERVAL_MS)

  beforeAll(async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
      const forward = () => realFetch(inject('laneRpcUrl'), init)
      type Body = { method: string; params: unknown[] }
      const body = JSON.parse(String(init?.body)) as Body | Body[]
      const params = Array.isArray(body) ? body.flatMap(request => request.params) : body.params
      const method = Array.isArray(body) ? `batch ${body.map(({ method }) => method).join(' ')}` : body.method
      if (!isOfIndex({ method, params })) node.requests.push(method)
      const isSpare = String(input).endsWith(inject('laneSpare'))
      const request = { method, params, isSpare, signal: init?.signal as AbortSignal }
      return node.fault ? node.fault(request, forward) : forward()
    })
    await chain('anvil_setCode', COUNTER, COUNTER_CODE)
  })
  afterEach(async () => {
    node.fault = undefined
    node.requests = []
    node.isMining = true
    await setReverting(false)
  })
  afterAll(() => {
    clearInterval(interval)
    vi.restoreAllMocks()
  })

  function newKey(): Hex {
    const key = keys.pop()
    if (key === undefined) throw new Error('The chain has too few accounts for the tests of this file')
    return key
  }

  /** Returns an executor with a key that no other test uses. */
  function newLane() {
    const key = newKey()
    const executor = executorOf([key])
    const stub = env.EXECUTOR_LANE.get(env.EXECUTOR_LANE.idFromName(executor.address))
    return { executor, account: privateKeyToAccount(key), stub }
  }

  return { newKey, newLane }
}

export const executorOf = (keys: readonly Hex[]): Executor =>
  createExecutor(env.EXECUTOR_LANE, keys, { inclusionTimeoutMs: 3_000 })

export const randomDigest = () => bytesToHex(crypto.getRandomValues(new Uint8Array(DIGEST_BYTES)))

/** Returns a request whose call counts its executions. */
export function newRequest(changes: Partial<RelayRequest> = {}): RelayRequest {
  const digest = randomDigest()
  return {
    digest,
    kind: 'ladder',
    by: taskOf(BigInt(digest)),
    groupNonce: '0',
    deadline: BigInt(Math.floor(Date.now() / 1000) + 3_600),
    call: { to: COUNTER, data: digest },
    ...changes,
  }
}

/** Returns how often a request was executed on the chain. */
export const executionsOf = async ({ call }: RelayRequest) =>
  hexToBigInt(await chain<Hex>('eth_getStorageAt', COUNTER, call.data, 'latest'))
export const nonceOf = async (address: Address) =>
  Number(await chain<Hex>('eth_getTransactionCount', address, 'latest'))

/** Returns the transaction of an outcome. */
export function hashOf(outcome: RelayOutcome): Hex {
  if (!('hash' in outcome) || outcome.hash === undefined) throw new Error(`no transaction: ${outcome.state}`)
  return outcome.hash
}

/**
 * Relays a request until its outcome is known. The lane waits three seconds for it, in which a busy machine may mine no
 * block; a repeated request has the same outcome.
 */
export async function relayUntilKnown(executor: Executor, request: RelayRequest): Promise<RelayOutcome> {
  const outcome = await executor.relay(request)
  return outcome.state === 'unknown' ? relayUntilKnown(executor, request) : outcome
}

/** Relays a request until it is mined. */
export async function relayUntilMined(
  executor: Executor,
  request: RelayRequest,
): Promise<RelayOutcome & { state: 'mined' }> {
  const outcome = await vi.waitFor(
    async () => {
      const outcome = await executor.relay(request)
      expect(outcome).toMatchObject({ state: 'mined' })
      return outcome
    },
    { timeout: 240_000, interval: BLOCK_INTERVAL_MS },
  )
  return outcome as RelayOutcome & { state: 'mined' }
}

/** Uses an account's nonce for a zero-value transfer, as someone else who has the key. */
export async function sendForeignTransaction(account: PrivateKeyAccount, nonce: number) {
  const gasPrice = 10n ** 13n
  const raw = await account.signTransaction({
    chainId: 31337,
    nonce,
    gas: 21_000n,
    to: account.address,
    maxFeePerGas: gasPrice,
    maxPriorityFeePerGas: gasPrice,
  })
  await chain('eth_sendRawTransaction', raw)
  await vi.waitFor(async () => expect(await nonceOf(account.address)).toBe(nonce + 1), { timeout: 240_000 })
}
