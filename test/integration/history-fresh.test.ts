import { expect, it } from 'vitest'
import { newTrader, openPosition, sign } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call } from '../support/surfaces.ts'

// Many agents at once, so that blocks, index and reads run into each other all the time.
const AGENTS = 25
const TRADES = 20

it('a trade that was answered is in the very next read, 500 times', { timeout: 120_000 }, async () => {
  const missing: string[] = []
  let trades = 0
  const life = async () => {
    const trader = await newTrader()
    const { agentId } = trader
    const positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '40' })
    // One quote of each kind: what changes from one intent to the next is the nonce.
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
      expect({ status, body }).toMatchObject({ status: 201 })
      hashes.unshift(body.transactionHash)
      const answer = await call('getTradeHistory', { agentId, limit: turn + 2 })
      const read = answer.body.trades.map(({ transactionHash }: Body) => transactionHash).slice(0, -1)
      if (JSON.stringify(read) !== JSON.stringify(hashes)) missing.push(`${agentId}: ${read} for ${hashes}`)
      trades++
    }
  }
  await Promise.all(Array.from({ length: AGENTS }, life))
  expect(missing).toEqual([])
  expect(trades).toBe(500)
})
