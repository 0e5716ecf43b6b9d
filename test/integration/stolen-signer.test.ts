import type { Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { chain, FRONTIER, quoteOf, type Submission, sign, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { isSend } from '../support/lanes.ts'
import { newOwnedTrader, type OwnerOperation, sendAsOwner } from '../support/owner.ts'
import { newOwner, type Owner, setSigner } from '../support/owner-calls.ts'
import { randomOf } from '../support/seeded-random.ts'
import { callOverHttp, deployment, type Input } from '../support/surfaces.ts'

// A thief has the key of an agent's signer and uses the service at the same time as the owner.
// HTTP only: the owner changes the agent between two calls of the thief, so what two surfaces return could differ.

const ATTEMPTS = inject('isLong') ? 30 : 8
const USDC = 1_000_000n
const LIMITS = { maxTradeUsdc: 60n * USDC, maxDailyTurnoverUsdc: 300n * USDC, maxExposureUsdc: 150n * USDC }
const ALLOWED = ['NVDA', 'META', 'PLTR']
/** What a round trip costs at most: 1 % on entry, 3 % on exit, and the fees of the pool. */
const ROUND_TRIP_BPS = 500n

/** The same as the service takes it. */
const MANDATE = {
  mode: 'trade',
  maxTradeUsdc: '60',
  maxDailyTurnoverUsdc: '300',
  maxExposureUsdc: '150',
  allowedTokens: ALLOWED.join(),
}
const { accounts, contracts } = deployment
const newKey = () => privateKeyToAccount(generatePrivateKey())

type Attempt = { submission: Submission; digest: Hex; status: number; body: Body }

/** Quotes and signs an intent, whatever its checks say; undefined if there is nothing to sign. */
async function signed({ agentId, account }: Trader, submission: Submission, input: Input) {
  const { status, body: quote } = await callOverHttp(quoteOf[submission], { agentId, ...input })
  if (status !== 200) return undefined
  const signature = await sign(account, quote.typedData)
  return { submission, digest: quote.digest as Hex, body: { agentId, ...quote.body, signature } as Input }
}
type SignedIntent = NonNullable<Awaited<ReturnType<typeof signed>>>

async function send({ submission, digest, body: signedBody }: SignedIntent): Promise<Attempt> {
  const { status, body } = await callOverHttp(submission, signedBody)
  return { submission, digest, status, body }
}

const openPositions = async (agentId: string): Promise<Body[]> =>
  (await callOverHttp('listPositions', { agentId })).body.positions
const tradesOf = async (agentId: string): Promise<Body[]> =>
  (await callOverHttp('getTradeHistory', { agentId, limit: 100 })).body.trades.toReversed()

/** Opens, adds, sells and loosens ladders at random until `stop` is called. */
function startThief(trader: Trader) {
  const random = randomOf('thief')
  const attempts: Attempt[] = []
  let isStopped = false
  async function act() {
    const positions = await openPositions(trader.agentId)
    const held = positions.length > 0 ? random.pick(positions) : undefined
    const usdcAmount = `${random.pick([5, 20, 40, 60, 61, 200])}`
    const exits = random.pick(['-800:10000', '-1900:10000', '-300:5000,-1500:10000'])
    const open = { symbol: random.pick([...ALLOWED, 'TSLA', 'COIN']), usdcAmount, exits }
    const [submission, input]: [Submission, Input] = random.pick([
      ['submitTradeIntent', open],
      ['submitTradeIntent', open],
      ['submitAddIntent', { positionId: held?.positionId, usdcAmount }],
      ['submitReduceIntent', { positionId: held?.positionId, exitBps: random.pick([2_500, 10_000]) }],
      ['submitExitLadderIntent', { positionId: held?.positionId, exits }],
    ])
    if (submission !== 'submitTradeIntent' && held === undefined) return
    const intent = await signed(trader, submission, input)
    if (intent) attempts.push(await send(intent))
  }
  async function run() {
    while (!isStopped) await act()
  }
  const running = run()
  return {
    attempts,
    /** Resolves once the thief has tried that many more times. */
    async tries(count: number) {
      const until = attempts.length + count
      await vi.waitFor(() => expect(attempts.length).toBeGreaterThanOrEqual(until), { timeout: 120_000, interval: 20 })
    },
    /** Resolves once an attempt was refused with a code. */
    async isRefused(code: string) {
      const codes = () => attempts.map(({ body }) => body.code)
      await vi.waitFor(() => expect(codes()).toContain(code), { timeout: 120_000, interval: 20 })
    },
    async stop() {
      isStopped = true
      await running
    },
  }
}

/** Sells the open positions for the owner, as any account may. */
async function flatten(agentId: string) {
  for (let round = 0; round < 20; round++) {
    const positionIds = (await openPositions(agentId)).map(({ positionId }) => BigInt(positionId))
    if (positionIds.length === 0) return
    await chain.send(accounts.depositor, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'executeExits',
      args: [positionIds],
    })
  }
  throw new Error(`Agent ${agentId} still has open positions`)
}

const isPurchase = ({ type }: Body) => type === 'PositionOpened' || type === 'PositionIncreased'
const sumOf = (trades: Body[], field: string) => trades.reduce((sum, trade) => sum + BigInt(trade[field] ?? 0), 0n)
const isBetween = (from: bigint, to: bigint) => (trade: Body) =>
  BigInt(trade.blockNumber) > from && BigInt(trade.blockNumber) < to

/** Returns the largest cost of all open positions at any time. */
function peakExposure(trades: Body[]): bigint {
  let [exposure, peak] = [0n, 0n]
  for (const trade of trades) {
    if (isPurchase(trade)) exposure += BigInt(trade.usdcAmount)
    else if (trade.usdcAmount !== null) exposure -= BigInt(trade.usdcAmount) - BigInt(trade.realizedPnlUsdc)
    if (exposure > peak) peak = exposure
  }
  return peak
}

describe("with the signer's key stolen", () => {
  let owner: Owner
  let stolen: Trader
  const signer = newKey()
  const newStolen = () => newOwnedTrader(newKey(), owner, { vault: FRONTIER })
  /** Sends a message of the owner, without gas. Returns the block in which it is mined. */
  async function actAsOwner({ agentId }: Trader, operation: OwnerOperation, input: Input): Promise<bigint> {
    const { status, body } = await sendAsOwner(owner, operation, { agentId, ...input }, callOverHttp)
    expect({ status, body }).toMatchObject({ status: operation === 'setMandate' ? 200 : 201 })
    return BigInt(body.blockNumber)
  }

  beforeAll(async () => {
    owner = await newOwner()
    stolen = await newStolen()
    await actAsOwner(stolen, 'setMandate', MANDATE)
  })
  afterEach(() => vi.restoreAllMocks())

  it("with the signer's key stolen the owner stops, flattens, re-keys and keeps trading, and the mandate bounds what the thief does", async () => {
    const { agentId } = stolen
    const rightful: Trader = { agentId, account: signer }
    const thief = startThief(stolen)
    await thief.tries(ATTEMPTS)
    const stopped = await actAsOwner(stolen, 'stopAgent', { action: 'reduceOnly' })
    await thief.tries(ATTEMPTS / 2)
    await thief.isRefused('MANDATE_STOPS_BUYING')
    await actAsOwner(stolen, 'stopAgent', { action: 'flatten' })
    await thief.tries(2)
    await flatten(agentId)
    const reKeyed = await actAsOwner(stolen, 'setSigner', { newSigner: signer.address })
    const allowedAgain = await actAsOwner(stolen, 'setMandate', { ...MANDATE, maxDailyTurnoverUsdc: '1000' })
    const intent = await signed(rightful, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '25' })
    const own = await send(intent as SignedIntent)
    expect(own).toMatchObject({ status: 201, body: { positionId: expect.any(String) } })
    await thief.tries(ATTEMPTS / 2)
    await thief.isRefused('INVALID_SIGNATURE')
    await thief.stop()

    const trades = await tradesOf(agentId)
    const before = trades.filter(isBetween(0n, reKeyed))
    const purchases = before.filter(isPurchase)
    expect(purchases.length).toBeGreaterThan(0)
    for (const { usdcAmount, symbol } of purchases) {
      expect(BigInt(usdcAmount)).toBeLessThanOrEqual(LIMITS.maxTradeUsdc)
      expect(ALLOWED).toContain(symbol)
    }
    const turnover = sumOf(purchases, 'usdcAmount')
    expect(turnover).toBeLessThanOrEqual(LIMITS.maxDailyTurnoverUsdc)
    expect(peakExposure(before)).toBeLessThanOrEqual(LIMITS.maxExposureUsdc)
    const lost = -sumOf(before, 'realizedPnlUsdc')
    expect(lost).toBeLessThanOrEqual((turnover * ROUND_TRIP_BPS) / 10_000n)

    // From the block of the stop on nothing is bought, and from that of the new key on nothing is the thief's.
    expect(trades.filter(isBetween(stopped, allowedAgain)).filter(isPurchase)).toEqual([])
    const after = trades.filter(isBetween(reKeyed - 1n, 2n ** 64n))
    const ofIntents = after.filter(({ source }) => source === 'intent')
    expect(ofIntents.map(({ transactionHash }) => transactionHash)).toEqual([own.body.transactionHash])

    const codes = new Set(thief.attempts.map(({ status, body }) => (status === 201 ? 'executed' : body.code)))
    expect([...codes]).toEqual(expect.arrayContaining(['executed', 'MANDATE_STOPS_BUYING', 'INVALID_SIGNATURE']))
    for (const { digest, status, body } of thief.attempts) {
      const known = await callOverHttp('getIntent', { digest })
      if (status === 201) {
        expect(known.body).toMatchObject({
          state: expect.stringMatching(/^(mined|final)$/),
          transactionHash: body.transactionHash,
        })
        expect(trades.map(({ transactionHash }) => transactionHash)).toContain(body.transactionHash)
      } else expect(known.body.state ?? 'unknown').toMatch(/^(unknown|rejected|reverted)$/)
    }
  }, 300_000)

  it("with the signer's key stolen what is in flight when the key is replaced reverts, and what was mined before stays reported", async () => {
    const trader = await newStolen()
    const { agentId } = trader
    const first = await send(
      (await signed(trader, 'submitTradeIntent', { symbol: 'META', usdcAmount: '20' })) as SignedIntent,
    )
    expect(first.status).toBe(201)
    const inFlight = (await signed(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })) as SignedIntent

    const original = globalThis.fetch.bind(globalThis)
    let isReKeyed = false
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      const text = await request.clone().text()
      if (!isReKeyed && isSend(JSON.parse(text || '{}').method)) {
        isReKeyed = true
        await setSigner(owner, agentId, signer.address)
      }
      return original(request)
    })
    const late = await send(inFlight)
    vi.restoreAllMocks()
    expect(isReKeyed).toBe(true)
    expect(late).toMatchObject({ status: 400, body: { code: 'INVALID_SIGNATURE' } })
    expect((await callOverHttp('getIntent', { digest: late.digest })).body).toMatchObject({ state: 'reverted' })
    expect((await callOverHttp('getIntent', { digest: first.digest })).body).toMatchObject({
      state: expect.stringMatching(/^(mined|final)$/),
      transactionHash: first.body.transactionHash,
    })
    expect((await send(inFlight)).status).toBe(400)
    expect((await tradesOf(agentId)).map(({ transactionHash }) => transactionHash)).toEqual([
      first.body.transactionHash,
    ])
  })

  it("with the signer's key stolen what was signed ahead is void at once if the owner cancels it, without a new key", async () => {
    const trader = await newStolen()
    const ahead = (await signed(trader, 'submitTradeIntent', { symbol: 'META', usdcAmount: '20' })) as SignedIntent
    await actAsOwner(trader, 'cancelIntents', { untilNonce: `${BigInt(ahead.body.nonce as string) + 5n}` })
    expect(await send(ahead)).toMatchObject({ status: 400, body: { code: 'INVALID_NONCE' } })
    expect(await tradesOf(trader.agentId)).toEqual([])
  })

  it("with the signer's key stolen the thief cannot take the protection off a stopped agent", async () => {
    const trader = await newStolen()
    const open = { symbol: 'META', usdcAmount: '20', exits: '-800:10000' }
    const { body } = await send((await signed(trader, 'submitTradeIntent', open)) as SignedIntent)
    await actAsOwner(trader, 'setMandate', { mode: 'stopped' })
    const { positionId } = body
    const loosened = await signed(trader, 'submitExitLadderIntent', { positionId, exits: '-1900:10000' })
    expect(await send(loosened as SignedIntent)).toMatchObject({
      status: 400,
      body: { code: 'MANDATE_FORBIDS_LOOSER_LADDER' },
    })
    const tightened = await signed(trader, 'submitExitLadderIntent', { positionId, exits: '-500:10000' })
    expect(await send(tightened as SignedIntent)).toMatchObject({ status: 201 })
  })
})
