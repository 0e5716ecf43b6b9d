import { expect, inject, it } from 'vitest'
import { newTrader, openPosition, sign } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call } from '../support/surfaces.ts'

// Many agents trade at once, so blocks, indexing and reads overlap all the time.
const AGENTS = inject('isLong') ? 25 : 5
const TRADES = inject('isLong') ? 20 : 4

it(`a relayed trade is in the next read, ${AGENTS * TRADES} times`, { timeout: 300_000 }, async () => {
  const missing: string[] = []
  let trades = 0
  const tradeAndRead = async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '40' })
    // One quote of each kind is enough: only the nonce changes from one intent to the next.
    const [reduce, add] = await Promise.all([
      call('getReduceIntentQuote', { agentId, positionId, exitBps: 1000 }),
      call('getAddIntentQuote', { agentId, positionId, usdcAmount: '2' }),
    ])
    const hashes: string[] = []
    for (let turn = 0; turn < TRADES; turn++) {
      const [submission, quote] =
        turn % 2 === 0 ? (['submitReduceIntent', reduce] as const) : (['submitAddIntent', add] as const)
      const { typedData, body: intent, nonce: first } = quote.body
      const nonce = `${BigInt(first) + BigInt(turn)}`
      const signature = await sign(trader.account, { ...typedData, message: { ...typedData.message, nonce } })
      const { status, body } = await call(submission, { agentId, ...intent, nonce, signature })
      expect(status, JSON.stringify(body)).toBe(201)
      hashes.unshift(body.transactionHash)
      const response = await call('getTradeHistory', { agentId, limit: turn + 2 })
      const read = response.body.trades.map(({ transactionHash }: Body) => transactionHash).slice(0, -1)
      if (JSON.stringify(read) !== JSON.stringify(hashes))
        missing.push(`agent ${agentId}: read ${read}, relayed ${hashes}`)
      trades++
    }
  }
  await Promise.all(Array.from({ length: AGENTS }, tradeAndRead))
  expect(missing).toEqual([])
  expect(trades).toBe(AGENTS * TRADES)
})
