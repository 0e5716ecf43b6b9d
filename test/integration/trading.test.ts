import { env } from 'cloudflare:workers'
import { createPublicClient, formatUnits, type Hex, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import {
  chain,
  GENESIS,
  newTrader,
  openPosition,
  registrationOf,
  type Submission,
  sign,
  signedIntent,
  submit,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, callOverHttp, deployment, type Input } from '../support/surfaces.ts'

const node = createPublicClient({ transport: http(deployment.rpcUrl) })

const position = async (agentId: string, positionId: string): Promise<Body> =>
  (await call('getPosition', { agentId, positionId })).body.position

const executeExit = (positionId: string) =>
  chain.send(deployment.accounts.keeper, {
    address: deployment.contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'executeExit',
    args: [BigInt(positionId)],
  })

describe('registration', () => {
  it('registration creates an agent of the signer, and repeating the body returns the same result', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const body = await registrationOf(account, { name: 'once' })
    const first = await call('registerAgent', body)
    expect(first.status).toBe(201)
    expect(first.body.transaction).toMatchObject({
      to: deployment.contracts.AgentRegistry,
      chainId: deployment.chainId,
    })
    const again = await call('registerAgent', body)
    expect(again).toMatchObject({
      status: 200,
      body: { agentId: first.body.agentId, transactionHash: first.body.transactionHash },
    })
    const { body: answer } = await call('getAgent', { agentId: first.body.agentId })
    expect(answer.agent).toMatchObject({
      owner: account.address,
      signer: account.address,
      payoutRecipient: account.address,
      vault: GENESIS,
      track: 0,
      trackName: 'CHALLENGE',
      status: 1,
      statusName: 'Active',
      name: 'once',
      hasERC8004Identity: false,
    })
  })

  it('registration has a quote with the fee, the domain and the nonce of the signer', async () => {
    const { body } = await call('getRegistrationQuote')
    expect(body).toMatchObject({
      registrationFee: { amount: '1000000', assetSymbol: 'USDC', decimals: 6, displayUsd: '1' },
      eip712: { domainName: 'Service AgentRegistry', domainVersion: '1', primaryType: 'SelfRegister' },
      signerNonce: null,
    })
  })
})

describe('a position', () => {
  it('a position is opened, added to, given a new ladder and stopped out by a price fall', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'AMZN', usdcAmount: '500' })
    const opened = await position(agentId, positionId)
    expect(opened).toMatchObject({ symbol: 'AMZN', status: 'Open', usdcCostBasis: '500000000', nextRuleIndex: 0 })
    expect(opened.exitRules).toEqual(opened.pendingRules)

    expect((await submit(trader, 'submitAddIntent', { positionId, usdcAmount: '100.5' })).status).toBe(201)
    expect((await position(agentId, positionId)).usdcCostBasis).toBe('600500000')

    const ladder = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-700:5000,-900:10000' })
    expect(ladder).toMatchObject({ status: 201, body: { agentId, positionId } })
    expect((await position(agentId, positionId)).pendingRules).toEqual([
      { triggerType: 'StopLoss', triggerBps: -700, exitBps: 5000 },
      { triggerType: 'StopLoss', triggerBps: -900, exitBps: 10000 },
    ])

    const entry = Number(opened.entryPriceUsdc) / 1e6
    await chain.setPrice('AMZN', (entry * 0.92).toFixed(2))
    await executeExit(positionId)
    const halved = await position(agentId, positionId)
    expect(halved).toMatchObject({ status: 'Open', nextRuleIndex: 1, pendingRules: [{ triggerBps: -900 }] })
    expect(BigInt(halved.realizedPnlUsdc)).toBeLessThan(0n)

    await chain.setPrice('AMZN', (entry * 0.9).toFixed(2))
    await executeExit(positionId)
    const closed = await position(agentId, positionId)
    expect(closed).toMatchObject({ status: 'Closed', tokenAmount: '0', pendingRules: [], nextRuleIndex: 2 })
    expect(closed).not.toHaveProperty('unrealizedPnlUsdc')
    await chain.setPrice('AMZN', '244.2')
  })

  it('a position is reduced and closed, with its realized PnL in the risk state and the closed positions', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'GOOGL', usdcAmount: '400' })
    expect((await call('listPositions', { agentId })).body.positions).toHaveLength(1)

    const reduced = await submit(trader, 'submitReduceIntent', { positionId, exitBps: '4000' })
    expect(reduced).toMatchObject({ status: 201, body: { positionId } })
    const rest = await position(agentId, positionId)
    expect(rest).toMatchObject({ status: 'Open', usdcCostBasis: '240000000' })

    expect((await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })).status).toBe(201)
    const closed = await position(agentId, positionId)
    const { body: risk } = await call('getRiskState', { agentId })
    expect(risk).toMatchObject({
      // A realized loss shrinks what may be invested.
      allocation: {
        cap: '10000000000',
        used: '0',
        available: `${10_000_000_000n + BigInt(closed.realizedPnlUsdc)}`,
      },
      positions: { opened: 1, closed: 1, openCount: 0 },
      pnl: { lifetimeRealizedUsdc: closed.realizedPnlUsdc, dailyRealizedUsdc: closed.realizedPnlUsdc },
      breaches: { drawdown: false, dailyLoss: false },
      promotionReadiness: { alphaScore: 0, meetsAlphaScore: false },
      priceStale: false,
    })
    expect((await call('listPositions', { agentId })).body.positions).toEqual([])
    const { body: history } = await call('listClosedPositions', { agentId, limit: 1 })
    expect(history.positions).toEqual([closed])
  })

  it('a position is opened by the transaction in the receipt', async () => {
    const trader = await newTrader()
    const { body } = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })
    const { body: transaction } = await call('getTransaction', { txHash: body.transactionHash })
    expect(transaction).toMatchObject({
      transactionHash: body.transactionHash,
      status: 'success',
      blockNumber: body.blockNumber,
      from: deployment.accounts.executor.address,
      to: deployment.contracts.TradeRouter,
      confirmations: expect.stringMatching(/^[1-9]\d*$/),
    })
  })
})

describe('the receipt of a trade', () => {
  const priceAt = async (symbol: string, blockNumber: string): Promise<bigint> => {
    const [, price] = await node.readContract({
      address: deployment.contracts.PriceOracle,
      abi: priceOracleAbi,
      functionName: 'latestRoundData',
      args: [deployment.tokens[symbol] as Hex],
      blockNumber: BigInt(blockNumber),
    })
    return price
  }

  it('the receipt of a trade says what it did, and the same again from its journal, from the index and by its digest', async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const withoutJournal = appWith({ EXECUTOR_PRIVATE_KEY: deployment.accounts.relayer.privateKey })
    const opening = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '90' })
    const { positionId } = (await call('submitTradeIntent', opening)).body
    const steps: [Submission, Input][] = [
      ['submitAddIntent', { positionId, usdcAmount: '10' }],
      ['submitExitLadderIntent', { positionId, exits: '-700:5000,-900:10000' }],
      ['submitReduceIntent', { positionId, exitBps: 2500 }],
      ['submitReduceIntent', { positionId, exitBps: 10_000 }],
    ]
    const posted: [Submission, Input, Body][] = [
      ['submitTradeIntent', opening, (await call('submitTradeIntent', opening)).body],
    ]
    for (const [submission, input] of steps) {
      const body = await signedIntent(trader, submission, input)
      posted.push([submission, body, (await call(submission, body)).body])
    }
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const { trades } = (await call('getTradeHistory', { agentId })).body
    for (const [index, [submission, body, receipt]] of posted.entries()) {
      expect((await call(submission, body)).body).toEqual(receipt)
      expect((await call(submission, body, withoutJournal)).body).toEqual(receipt)
      const trade = trades[posted.length - 1 - index]
      const { fill, realizedPnlUsdc, pendingRules } = receipt
      expect(trade).toMatchObject({ transactionHash: receipt.transactionHash, realizedPnlUsdc })
      if (submission === 'submitExitLadderIntent') {
        expect({ fill, pendingRules }).toEqual({
          fill: null,
          pendingRules: [
            { triggerType: 'StopLoss', triggerBps: -700, exitBps: 5000 },
            { triggerType: 'StopLoss', triggerBps: -900, exitBps: 10_000 },
          ],
        })
        continue
      }
      const { usdcAmount, tokenAmount } = trade
      const value = (BigInt(tokenAmount) * (await priceAt('NVDA', receipt.blockNumber))) / 10n ** 20n
      const cost = submission === 'submitReduceIntent' ? value - BigInt(usdcAmount) : BigInt(usdcAmount) - value
      const costBps = Number((cost * 10_000n) / value)
      expect(fill).toEqual({ priceUsd: formatUnits(BigInt(trade.priceUsdc), 6), usdcAmount, tokenAmount, costBps })
      expect(pendingRules?.length ?? null).toBe(submission === 'submitTradeIntent' ? 2 : null)
    }
  })

  it('the receipt of a trade is what its digest shows', async () => {
    const trader = await newTrader()
    const parameters = { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '20' }
    const { body: quote } = await call('getTradeIntentQuote', parameters)
    const signature = await sign(trader.account, quote.typedData)
    const { body: receipt } = await call('submitTradeIntent', { ...quote.body, agentId: trader.agentId, signature })
    const { fill, realizedPnlUsdc, pendingRules } = receipt
    expect(fill).toMatchObject({ usdcAmount: '20000000', costBps: expect.any(Number) })
    const { body: intent } = await call('getIntent', { digest: quote.digest })
    expect(intent).toMatchObject({ fill, realizedPnlUsdc, pendingRules })
    expect({ realizedPnlUsdc, pendingRules }).toEqual({ realizedPnlUsdc: null, pendingRules: quote.body.exits })
  })
})

describe('the same signed body twice', () => {
  it('the same signed body twice returns the same receipt and trades once, even if posted concurrently', async () => {
    const trader = await newTrader()
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })
    const [first, second] = await Promise.all([call('submitTradeIntent', body), call('submitTradeIntent', body)])
    const third = await call('submitTradeIntent', body)
    expect([first.status, second.status, third.status]).toEqual([201, 201, 201])
    expect(second.body).toEqual(first.body)
    expect(third.body).toEqual(first.body)
    expect((await call('listPositions', { agentId: trader.agentId })).body.positions).toHaveLength(1)
  })

  it('the same signed body twice is rejected if another body has used its nonce', async () => {
    const trader = await newTrader()
    const [one, other] = await Promise.all(
      ['NVDA', 'AAPL'].map(symbol => signedIntent(trader, 'submitTradeIntent', { symbol, usdcAmount: '20' })),
    )
    // Over HTTP alone: by the time of a second call over MCP, the nonce in flight has been used.
    const answers = await Promise.all([
      callOverHttp('submitTradeIntent', one),
      callOverHttp('submitTradeIntent', other),
    ])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 400])
    expect(answers.find(({ status }) => status === 400)?.body.code).toMatch(/^(NONCE_IN_FLIGHT|INVALID_NONCE)$/)
    expect((await call('listPositions', { agentId: trader.agentId })).body.positions).toHaveLength(1)
  })
})
