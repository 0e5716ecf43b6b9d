import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { logLag } from '../../src/scheduled/scheduled.ts'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'

// The index in the database. trades.test.ts and history-property.test.ts test what the API returns from it.

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
let trader: Trader
let positionId: string

beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
  await indexer().catchUp() // an index that starts creates its tables
})

it('a log line tells of an index that is far behind, and of a chain that is', async () => {
  const context = createContext(parseConfig(workerVars(deployment)), env)
  const lines: string[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(String(line)))
  const events = () => lines.map(line => (JSON.parse(line) as { event: string }).event)
  await vi.waitFor(
    async () => {
      // The indexer moves the cursor back within a second.
      await env.HISTORY.prepare('UPDATE cursor SET timestamp = timestamp - 1000').run()
      await logLag(context)
      expect(events()).toContain('index lag')
    },
    { timeout: 120_000 },
  )
  await logLag(context, Date.now() + 365 * 86_400_000)
  spy.mockRestore()
  expect(events()).toContain('chain lag')
  await vi.waitFor(async () => void (await indexer().catchUp()), { timeout: 120_000 })
})

it('readiness reports how far the index is behind', async () => {
  const { cursor } = await indexer().catchUp()
  const { status, body } = await call('getReadiness')
  const { history } = body.details ?? body
  expect({ status, history }).toMatchObject({ status: 200, history: { headBlock: body.rpc.blockNumber } })
  expect(Number(history.cursor)).toBeGreaterThanOrEqual(cursor ?? 0)
  expect(history.lagBlocks).toBe(Math.max(0, Number(history.headBlock) - Number(history.cursor)))
})

describe('without an index of the same contracts', () => {
  const { contracts, accounts } = deployment
  const elsewhere = appWith({
    CONTRACTS: JSON.stringify({ ...contracts, AllocationManager: accounts.relayer.address }),
  })

  it('without an index of the same contracts reads of the history are refused', async () => {
    const responses = [
      await call('getTradeHistory', { agentId: trader.agentId }, elsewhere),
      await call('listAgentsByOwner', { owner: trader.account.address }, elsewhere),
      await call('listClosedPositions', { agentId: trader.agentId, cursor: 'p9' }, elsewhere),
    ]
    for (const response of responses)
      expect(response).toMatchObject({ status: 503, body: { code: 'HISTORY_UNAVAILABLE', retryable: true } })
  })

  it('without an index of the same contracts closed positions are found among the newest positions of all agents', async () => {
    const { body } = await call('listClosedPositions', { agentId: trader.agentId }, elsewhere)
    expect(body).toMatchObject({ positions: [{ positionId }], nextCursor: `p${positionId}`, window: 500, lagBlocks: 0 })
  })
})
