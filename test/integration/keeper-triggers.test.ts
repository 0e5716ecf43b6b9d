import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { toFunctionSelector } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { chain, FRONTIER, newTrader, openPosition, sign, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper, runCycle } from '../support/keeper-cycles.ts'
import { sendAsOwner } from '../support/owner.ts'
import { call, deployment } from '../support/surfaces.ts'

// With more open positions than a cycle reads, the keeper selects the positions it reads by price and by marks.

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const MAX_PRICE_AGE = 86_400
/** Of the reads in a cycle, the first contains this call. */
const POSITION_COUNT = toFunctionSelector('positionCount()')

const sql = (query: string, ...bindings: SqlStorageValue[]): Promise<Record<string, SqlStorageValue>[]> =>
  runInDurableObject(keeper(), (_, { storage }) => storage.sql.exec(query, ...bindings).toArray())

/** Adds open positions that do not exist on the chain: a cycle finds the next 120 of them closed. */
const FIRST_FILLER = 1_000_000
const addFillers = () =>
  sql(
    `WITH RECURSIVE filler (id) AS (SELECT ?1 UNION ALL SELECT id + 1 FROM filler WHERE id < ?1 + 9999)
     INSERT INTO position SELECT id, 0, ?3, ?2, NULL, NULL, 0, 0, 0, NULL, '{}' FROM filler`,
    FIRST_FILLER,
    deployment.tokens.COIN as string,
    FRONTIER,
  )
/** Makes the next cycle read the positions above an id. */
async function setCursor(positionId: number) {
  await sql(`UPDATE keeper SET value = ? WHERE name = 'cursor'`, `${positionId}`)
  await evictDurableObject(keeper())
}
/** Lets the next comparison begin after a position. */
const compareAfter = (positionId: number) => sql(`UPDATE keeper SET value = ? WHERE name = 'compared'`, `${positionId}`)
const isMarked = async (positionId: string): Promise<boolean> => {
  const [row] = await sql('SELECT watched_until FROM position WHERE id = ?', Number(positionId))
  return Number(row?.watched_until) > Date.now()
}
const untilMarked = (positionId: string) =>
  vi.waitFor(
    async () => {
      expect(await isMarked(positionId)).toBe(true)
    },
    { timeout: 120_000 },
  )
/** Takes a mark back, as if the call had been lost. */
const unmark = (positionId: string) =>
  sql('UPDATE position SET watched_until = 0, changed_block = 0 WHERE id = ?', Number(positionId))

async function opened(
  exits: string,
): Promise<{ trader: Trader; positionId: string; moveTo: (factor: number) => Promise<unknown> }> {
  const trader = await newTrader({ vault: FRONTIER })
  const positionId = await openPosition(trader, { symbol: 'COIN', usdcAmount: '50', exits })
  const { entryPriceUsdc } = (await call('getPosition', { agentId: trader.agentId, positionId })).body.position
  await disarmKeeper(keeper())
  await compareAfter(FIRST_FILLER)
  return { trader, positionId, moveTo: factor => chain.setPrice('COIN', ((entryPriceUsdc / 1e6) * factor).toFixed(2)) }
}

const lastOutcome = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPositionAutomation', { agentId, positionId })).body.lastOutcome

const executed = { outcome: 'executed', firedBy: 'keeper' }
let price: string
beforeAll(async () => {
  price = (await call('getPrices')).body.prices.COIN.priceUsd
  await runCycle(keeper())
  await addFillers()
  // The fillers count from the next start of the object on.
  await evictDurableObject(keeper())
})
afterEach(() => chain.setPrice('COIN', price))
afterAll(async () => {
  await sql('DELETE FROM position WHERE id >= ?', FIRST_FILLER)
  await chain.refreshPrices()
})

describe('a keeper of many positions that hears from the index', () => {
  it('reads a position that the index says has changed', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    const { status } = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })
    expect(status).toBe(201)
    await untilMarked(positionId) // by the receipt
    await unmark(positionId)
    await indexer().catchUp()
    await untilMarked(positionId)
    await runCycle(keeper())
    await moveTo(0.98)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('reads a position again that changes while it reads it', async () => {
    const { trader, positionId } = await opened('-500:10000')
    const { asOf } = (await call('getPosition', { agentId: trader.agentId, positionId })).body
    const changes = { block: BigInt(asOf.blockNumber) + 1n, positionIds: [BigInt(positionId)] }
    expect(await isMarked(positionId)).toBe(false)
    const original = globalThis.fetch.bind(globalThis)
    let hasRead = false
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const request = new Request(input as RequestInfo, init as RequestInit)
      const isRead = !hasRead && (await request.clone().text()).includes(POSITION_COUNT.slice(2))
      const response = await original(request)
      if (isRead) {
        hasRead = true
        await keeper().changed({ positions: [changes] })
      }
      return response
    })
    await disarmKeeper(keeper())
    vi.restoreAllMocks()
    expect(hasRead).toBe(true)
    expect(await isMarked(positionId)).toBe(true)
  })
})

describe('a keeper of many positions, while the index is unreachable', () => {
  const rename = (from: string, to: string) => env.HISTORY.prepare(`ALTER TABLE ${from} RENAME TO ${to}`).run()
  beforeAll(() => rename('cursor', 'cursor_away'))
  afterAll(() => rename('cursor_away', 'cursor'))

  it('fires an exit in the cycle in which the price reaches its trigger', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await moveTo(0.96)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
    await moveTo(0.949)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('learns from a receipt that an agent has changed a ladder', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    const { status } = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })
    expect(status).toBe(201)
    await untilMarked(positionId)
    await runCycle(keeper())
    await moveTo(0.98)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('learns from receipts of an order that is placed, and of an owner who sells', async () => {
    const { trader, positionId } = await opened('-500:10000')
    const { agentId, account } = trader
    const { body: quote } = await call('getOrderQuote', { agentId, type: 'stop', positionId, price: '0.5' })
    const signature = await sign(account, quote.typedData)
    expect((await call('submitOrder', { agentId, ...quote.body, signature })).status).toBe(201)
    const reports = () => keeper().findOrders([quote.digest])
    await vi.waitFor(async () => expect(await reports()).toEqual([expect.anything()]), { timeout: 120_000 })
    await disarmKeeper(keeper())
    await unmark(positionId)
    await sendAsOwner(account, 'stopAgent', { agentId, action: 'flatten' })
    await untilMarked(positionId)
  })

  it('repairs a wrong entry when it compares it with the chain, and fires what it finds', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await moveTo(0.99)
    await runCycle(keeper())
    await sql('UPDATE position SET below = NULL, above = NULL WHERE id = ?', Number(positionId))
    await unmark(positionId)
    await moveTo(0.94)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
    await compareAfter(Number(positionId) - 1)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('reads positions again whose rows a cycle could not store', async () => {
    const { positionId } = await opened('-500:10000')
    await sql('DELETE FROM position WHERE id = ?', Number(positionId))
    await setCursor(Number(positionId) - 1)
    await sql(`CREATE TRIGGER full BEFORE INSERT ON position BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
    await expect(runInDurableObject(keeper(), instance => instance.runCycle())).rejects.toThrow('the disk is full')
    await sql('DROP TRIGGER full')
    await runCycle(keeper())
    expect(await keeper().find(BigInt(positionId))).toBeDefined()
  })

  it('fires the exits of its first pass although the second fails, which is made again in the next cycle', async () => {
    const reached = await opened('-500:10000')
    await runCycle(keeper())
    const found = await opened('-500:10000')
    await sql('DELETE FROM position WHERE id = ?', Number(found.positionId))
    await setCursor(Number(found.positionId) - 1)
    await sql('UPDATE position SET agent = 0 WHERE id = ?', Number(reached.positionId)) // it is stored again
    await found.moveTo(0.94)
    await sql(
      `CREATE TRIGGER full BEFORE UPDATE ON position WHEN NEW.id = ${reached.positionId}
       BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`,
    )
    await expect(runInDurableObject(keeper(), instance => instance.runCycle())).rejects.toThrow('the disk is full')
    await sql('DROP TRIGGER full')
    expect(await lastOutcome(found.trader, found.positionId)).toMatchObject(executed)
    await runCycle(keeper())
    expect(await lastOutcome(reached.trader, reached.positionId)).toMatchObject(executed)
  })

  it('fires the next rule of a position at once, however many others were sold a moment ago', async () => {
    const { trader, positionId, moveTo } = await opened('-500:5000,-900:10000')
    await moveTo(0.949)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject({ ...executed, ruleIndex: 0 })
    await moveTo(0.945)
    await runCycle(keeper())
    await sql(
      'UPDATE position SET watched_until = ?1 WHERE closed_at IS NULL AND id BETWEEN ?2 AND ?2 + 1499',
      Date.now() + 600_000,
      FIRST_FILLER + 6_000,
    )
    await moveTo(0.9)
    await runCycle(keeper())
    await sql('UPDATE position SET watched_until = 0 WHERE id >= ?', FIRST_FILLER)
    expect(await lastOutcome(trader, positionId)).toMatchObject({ ...executed, ruleIndex: 1 })
  })

  it('visits few rows in a cycle', async () => {
    await runCycle(keeper())
    const rowsRead = await runInDurableObject(keeper(), async (instance, { storage }) => {
      const exec = vi.spyOn(storage.sql, 'exec')
      await instance.runCycle()
      const cursors = exec.mock.results.map(({ value }) => value as SqlStorageCursor<Record<string, SqlStorageValue>>)
      exec.mockRestore()
      return cursors.reduce((sum, cursor) => sum + cursor.rowsRead, 0)
    })
    expect(rowsRead).toBeGreaterThan(0)
    expect(rowsRead).toBeLessThan(3_000)
  })

  it('says that a price is stale for positions that it does not read', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await chain.increaseTime(MAX_PRICE_AGE + 60)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'deferred', reason: 'priceStale' })
    await moveTo(1)
    await runCycle(keeper())
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
  })
})
