import { env } from 'cloudflare:workers'
import { toFunctionSelector, zeroHash } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import {
  newTrader,
  openPosition,
  registrationOf,
  type Submission,
  signedIntent,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, callOverHttp as call, deployment, type Input, type OperationId } from '../support/surfaces.ts'

// HTTP only: counts the requests to the node, which are the same over both surfaces. The number of HTTP requests to the
// node per operation: on the first call of an isolate, and on the next one within the same block. Reads make their
// requests one after the other, so it is also the number of sequential round trips.

/** Methods of background work: lanes follow their transactions, and the indexer follows the chain. */
const BACKGROUND_METHODS = new Set([
  'eth_chainId',
  'eth_getTransactionCount',
  'eth_getBalance',
  'eth_getBlockByNumber',
  'eth_getLogs',
])

type RpcCall = { method: string; params: [{ from?: string; data?: string }] }

/**
 * What a lane asks every few seconds under the id of an Arbitrum chain, because anvil lacks the interface that would
 * tell.
 */
const isPriceOfL1 = ({ method, params: [call] }: RpcCall) => method === 'eth_estimateGas' && call.data === '0x'

/** The tested app's own URL of the node, to tell its requests from the lanes', the index's and the streams'. */
const OWN_URL = `${deployment.rpcUrl}/operations`
const app = (changes: Record<string, string> = {}) => appWith({ ...changes, RPC_URL: OWN_URL })

/** Returns the methods of the requests to the node while `run` runs: by the app, and by its lane for it. */
async function requestsOf(run: () => Promise<{ status: number }>): Promise<string[]> {
  const requests: string[] = []
  const spy = vi.spyOn(globalThis, 'fetch')
  spy.mockImplementation(async (input, init) => {
    const request = new Request(input as RequestInfo, init as RequestInit)
    const isOwn = request.url === OWN_URL
    const body = request.url.startsWith(deployment.rpcUrl) ? [await request.clone().json()].flat() : []
    const calls = (body as RpcCall[])
      .filter(({ method, params }) => isOwn || method !== 'eth_call' || params[0].from)
      .filter(call => !isPriceOfL1(call))
    const response = await original(isOwn ? new Request(deployment.rpcUrl, request) : request)
    const methods = calls.map(({ method }) => method)
    // A block was mined at that moment: the transport repeats the request.
    const isLost = methods.length > 0 && (await response.clone().text()).includes('BlockOutOfRange')
    // Lanes and the indexer ask for the head.
    const isOfBackground = (method: string) =>
      BACKGROUND_METHODS.has(method) || (!isOwn && method === 'eth_blockNumber')
    const isBackground = methods.every(isOfBackground)
    if (!isLost && !isBackground) requests.push(methods.join('+'))
    return response
  })
  try {
    expect((await run()).status).toBeLessThan(300)
  } finally {
    spy.mockRestore()
  }
  return requests
}
const original = globalThis.fetch.bind(globalThis)
afterEach(() => vi.restoreAllMocks())

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const indexed = () => indexer().catchUp()

let trader: Trader
let positionId: string
let txHash: string
beforeAll(async () => {
  trader = await newTrader()
  // The indexer makes some requests only once.
  await indexed()
  const { body } = await call(
    'submitTradeIntent',
    await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' }),
  )
  ;({ positionId, transactionHash: txHash } = body)
  const closed = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '50' })
  await call(
    'submitReduceIntent',
    await signedIntent(trader, 'submitReduceIntent', { positionId: closed, exitBps: 10000 }),
  )
})

// The first simulation of a kind of call estimates its gas.
const readSimulateSend = ['eth_call', expect.stringMatching(/^eth_(call|estimateGas)$/), 'eth_sendRawTransactionSync']

describe('round trips to the node', () => {
  const agent = () => ({ agentId: trader.agentId })
  const position = () => ({ ...agent(), positionId })
  it.each<[OperationId, () => Input, cold: number, warm: number]>([
    ['getHealth', () => ({}), 0, 0],
    ['listVaults', () => ({}), 1, 0],
    ['getVault', () => ({ id: 'genesis' }), 1, 0],
    ['listVaultTokens', () => ({ id: 'genesis' }), 1, 0],
    ['listTokens', () => ({}), 1, 0],
    ['getPrices', () => ({ symbols: 'NVDA' }), 1, 0],
    ['getAgent', agent, 1, 0],
    ['getRegistrationQuote', () => ({ signer: trader.account.address }), 1, 1],
    ['getPosition', position, 2, 1], // the first one to learn its token
    ['getPositionAutomation', position, 1, 1],
    ['listPositions', agent, 1, 1],
    ['getRiskState', agent, 3, 2],
    ['getTradeIntentQuote', agent, 1, 1],
    ['getTradeIntentQuote', () => ({ ...agent(), symbol: 'AAPL', usdcAmount: '10' }), 1, 1],
    ['getAddIntentQuote', () => ({ ...position(), usdcAmount: '10' }), 1, 1],
    ['getReduceIntentQuote', () => ({ ...position(), exitBps: 5000 }), 1, 1],
    ['getExitLadderIntentQuote', () => ({ ...position(), exits: '-900:10000' }), 1, 1],
    ['getOrderQuote', () => ({ ...agent(), type: 'limit', symbol: 'AAPL', usdcAmount: '10', price: '100' }), 1, 1],
    ['getOrderQuote', () => ({ ...agent(), type: 'cancel', orderId: zeroHash }), 1, 1],
  ])('round trips to the node of %s %o, without and with a cache', async (id, input, cold, warm) => {
    const tested = app({ READ_LEASE_MS: '60000' })
    for (const expected of [cold, warm]) {
      const requests = await requestsOf(() => call(id, input(), tested))
      expect(requests).toEqual(Array.from({ length: expected }, () => 'eth_call'))
    }
  })

  // Next to the reads there is one batch of headers and logs, which closes the gap between the index and the head.
  it.each<[OperationId, () => Input, number]>([
    ['getTradeHistory', agent, 1],
    ['listClosedPositions', agent, 2],
    ['listAgentsByOwner', () => ({ owner: trader.account.address }), 2],
    ['listAgents', () => ({ track: '0' }), 2],
    ['getCandles', () => ({ symbol: 'NVDA' }), 1],
    ['getEquityHistory', agent, 1],
  ])('round trips to the node of %s %o, with the index', async (id, input, calls) => {
    await indexed()
    const requests = await requestsOf(() => call(id, input(), app()))
    expect(requests).toEqual(Array.from({ length: calls }, () => 'eth_call'))
  })

  it('round trips to the node of getVaultStats, with the index, are two, and a third for the names of agents with an hour of results', async () => {
    await indexed()
    let stats: Body = {}
    const requests = await requestsOf(async () => {
      const response = await call('getVaultStats', { id: 'genesis' }, app())
      stats = response.body
      return response
    })
    const calls = stats.performance.contributions.length > 0 ? 3 : 2
    expect(requests).toEqual(Array.from({ length: calls }, () => 'eth_call'))
  })

  it('round trips to the node of the first readiness check have the code of all contracts in one batch', async () => {
    const requests = await requestsOf(() => call('getReadiness', {}, app()))
    expect(requests.filter(methods => methods.includes('eth_getCode'))).toHaveLength(1)
  })

  it('round trips to the node of a transaction are the transaction, its receipt and the head, and first the names of contracts', async () => {
    const tested = app()
    const ofTransaction = ['eth_blockNumber', 'eth_getTransactionByHash', 'eth_getTransactionReceipt']
    for (const ofNames of [['eth_call', 'eth_call'], []]) {
      const requests = await requestsOf(() => call('getTransaction', { txHash }, tested))
      expect(requests.sort()).toEqual([...ofTransaction, ...ofNames].sort())
    }
  })

  it('round trips to the node of an intent are the receipt of its transaction and the price of its block, and first the names of contracts', async () => {
    const submitted = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    const { body: quote } = await call('getAddIntentQuote', {
      ...position(),
      usdcAmount: '10',
      deadline: submitted.deadline,
    })
    await call('submitAddIntent', submitted)
    const tested = app()
    for (const ofNames of [['eth_call', 'eth_call'], []]) {
      const requests = await requestsOf(() => call('getIntent', { digest: quote.digest }, tested))
      expect(requests).toEqual(['eth_getTransactionReceipt', ...ofNames, 'eth_call'])
    }
  })

  it.each<[Submission, Input]>([
    ['submitTradeIntent', { symbol: 'MSFT', usdcAmount: '10' }],
    ['submitAddIntent', { usdcAmount: '10' }],
    ['submitReduceIntent', { exitBps: 1000 }],
    ['submitExitLadderIntent', { exits: '-900:10000' }],
  ])(
    'round trips to the node of %s are a read, a simulation and a send, and for a fill the price of its block',
    async (submission, input) => {
      const body = await signedIntent(trader, submission, 'symbol' in input ? input : { ...input, positionId })
      // The first position of a vault in a token needs more gas than the lane has estimated for others.
      if (submission === 'submitTradeIntent') await openPosition(await newTrader(), input)
      const tested = app()
      // An addition takes another read while the isolate does not know the token of the position.
      if (submission === 'submitAddIntent') await requestsOf(() => call('getPosition', position(), tested))
      const requests = await requestsOf(() => call(submission, body, tested))
      const priced = submission === 'submitExitLadderIntent' ? [] : ['eth_call']
      expect(requests).toEqual([...readSimulateSend, ...priced])
    },
  )

  it('reads of one position ask for the multiplier of its token alone, however many tokens are listed', async () => {
    const multiplierOf = toFunctionSelector('multiplierOf(address)').slice(2)
    const submitted = await signedIntent(trader, 'submitAddIntent', { positionId, usdcAmount: '10' })
    const asked: number[] = []
    const spy = vi.spyOn(globalThis, 'fetch')
    spy.mockImplementation(async (input, init) => {
      const sent = new Request(input as RequestInfo, init as RequestInit)
      if (sent.url !== OWN_URL) return original(sent)
      asked.push((await sent.clone().text()).split(multiplierOf).length - 1)
      return original(new Request(deployment.rpcUrl, sent))
    })
    expect((await call('getPosition', position(), app())).status).toBe(200)
    expect((await call('submitAddIntent', submitted, app())).status).toBe(201)
    expect(Math.max(...asked)).toBe(1)
  })

  it('reads of prices that are asked again send a tenth of the first one to the node', async () => {
    const tested = app({ READ_LEASE_MS: '0' })
    const sizes: number[] = []
    const spy = vi.spyOn(globalThis, 'fetch')
    spy.mockImplementation(async (input, init) => {
      const sent = new Request(input as RequestInfo, init as RequestInit)
      if (sent.url !== OWN_URL) return original(sent)
      sizes.push((await sent.clone().text()).length)
      return original(new Request(deployment.rpcUrl, sent))
    })
    const answers = [await call('getPrices', {}, tested), await call('getPrices', {}, tested)].map(({ body }) => body)
    const [first = 0, ...later] = sizes
    expect(Math.max(...later)).toBeLessThan(first / 7)
    expect(Object.keys(answers[1].prices)).toEqual(Object.keys(answers[0].prices))
  })

  it('round trips to the node of a registration are a read, a simulation and a send', async () => {
    const body = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    const requests = await requestsOf(() => call('registerAgent', body, app()))
    expect(requests).toEqual(readSimulateSend)
  })
})
