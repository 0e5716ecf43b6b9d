import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { PositionStatus, TriggerType } from '@agent-trading-service/protocol/enums'
import type { WatchedPosition } from '@agent-trading-service/protocol/position'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { decideExit } from '../../src/keeper/exit-decision.ts'
import { newEntry } from '../../src/keeper/keeper-entry.ts'
import { chain, FRONTIER, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper } from '../support/disarm-keeper.ts'
import { randomOf } from '../support/seeded-random.ts'
import { call, deployment } from '../support/surfaces.ts'

// With more open positions than a cycle reads, the keeper selects by price and by events those that it reads.

const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const MAX_PRICE_AGE = 86_400

const sql = (query: string, ...bindings: SqlStorageValue[]): Promise<void> =>
  runInDurableObject(keeper(), (_, { storage }) => void storage.sql.exec(query, ...bindings))

/** Adds open positions that do not exist on the chain: a cycle finds 170 to 600 of them closed. */
const FIRST_FILLER = 1_000_000
const addFillers = () =>
  sql(
    `WITH RECURSIVE filler (id) AS (SELECT ?1 UNION ALL SELECT id + 1 FROM filler WHERE id < ?1 + 9999)
     INSERT INTO position (id, token, vault, fired, watched_until) SELECT id, ?2, ?3, 0, 0 FROM filler`,
    FIRST_FILLER,
    deployment.tokens.COIN as string,
    FRONTIER,
  )
/** Lets the next sweep begin after a position. */
const sweepAfter = (positionId: number) =>
  sql(`INSERT OR REPLACE INTO keeper (name, value) VALUES ('swept', ?)`, `${positionId}`)

async function opened(
  exits: string,
): Promise<{ trader: Trader; positionId: string; moveTo: (factor: number) => Promise<unknown> }> {
  const trader = await newTrader({ vault: FRONTIER })
  const positionId = await openPosition(trader, { symbol: 'COIN', usdcAmount: '50', exits })
  const { entryPriceUsdc } = (await call('getPosition', { agentId: trader.agentId, positionId })).body.position
  await disarmKeeper(keeper())
  await sweepAfter(FIRST_FILLER)
  return { trader, positionId, moveTo: factor => chain.setPrice('COIN', ((entryPriceUsdc / 1e6) * factor).toFixed(2)) }
}

const lastOutcome = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await call('getPositionAutomation', { agentId, positionId })).body.lastOutcome

describe('a keeper of many positions', () => {
  const executed = { outcome: 'executed', firedBy: 'keeper' }
  let price: string
  beforeAll(async () => {
    price = (await call('getPrices')).body.prices.COIN.priceUsd
    await keeper().runCycle()
    await addFillers()
    // The fillers count from the next start of the object on.
    await evictDurableObject(keeper())
  })
  afterEach(() => chain.setPrice('COIN', price))
  afterAll(async () => {
    await sql('DELETE FROM position WHERE id >= ?', FIRST_FILLER)
    await chain.refreshPrices()
  })

  it('fires an exit in the cycle in which the price reaches its trigger', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await moveTo(0.96)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
    await moveTo(0.949)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('learns from events that an agent has changed a ladder', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    const { status } = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })
    expect(status).toBe(201)
    await keeper().runCycle()
    await moveTo(0.98)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('repairs a wrong row with the sweep, and fires what it finds', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await moveTo(0.99)
    await keeper().runCycle() // the events of the opening are read
    await sql('UPDATE position SET below = NULL, above = NULL WHERE id = ?', Number(positionId))
    await moveTo(0.94)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
    await sweepAfter(Number(positionId) - 1)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('finds with the sweep what changed on the chain without an event that it read', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await keeper().runCycle()
    expect((await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })).status).toBe(201)
    await sql(`UPDATE keeper SET value = value + 1000 WHERE name = 'events'`)
    await sweepAfter(Number(positionId) - 1)
    await keeper().runCycle()
    await sweepAfter(FIRST_FILLER)
    await moveTo(0.98)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('learns from events that an agent has changed a ladder, although the node did not have them yet', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    const { status, body } = await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })
    expect(status).toBe(201)
    await moveTo(1)
    // A few blocks later, which is less than the keeper reads again.
    await sql(`UPDATE keeper SET value = ? WHERE name = 'events'`, `${BigInt(body.blockNumber) + 4n}`)
    await keeper().runCycle()
    await moveTo(0.98)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('watches a position without a row once an event names it', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await sql('DELETE FROM position WHERE id = ?', Number(positionId))
    expect((await submit(trader, 'submitExitLadderIntent', { positionId, exits: '-100:10000' })).status).toBe(201)
    await keeper().runCycle()
    await moveTo(0.98)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject(executed)
  })

  it('reads positions again whose rows a cycle could not store', async () => {
    const { positionId } = await opened('-500:10000')
    await sql('DELETE FROM position WHERE id = ?', Number(positionId))
    await sql(`UPDATE keeper SET value = ? WHERE name = 'cursor'`, `${Number(positionId) - 1}`)
    await sql(`UPDATE keeper SET value = value + 1000 WHERE name = 'events'`)
    await sql(`CREATE TRIGGER full BEFORE INSERT ON position BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`)
    await expect(runInDurableObject(keeper(), instance => instance.runCycle())).rejects.toThrow('the disk is full')
    await sql('DROP TRIGGER full')
    await keeper().runCycle()
    expect(await keeper().find(BigInt(positionId))).toBeDefined()
  })

  it('fires the exits of its first pass although the second fails, which is made again in the next cycle', async () => {
    const reached = await opened('-500:10000')
    await keeper().runCycle()
    const found = await opened('-500:10000')
    await sql('DELETE FROM position WHERE id = ?', Number(found.positionId))
    await sql(`UPDATE keeper SET value = ? WHERE name = 'cursor'`, `${Number(found.positionId) - 1}`)
    await sql('UPDATE position SET fingerprint = NULL WHERE id = ?', Number(reached.positionId)) // it is stored again
    await found.moveTo(0.94)
    await sql(
      `CREATE TRIGGER full BEFORE INSERT ON position WHEN NEW.id = ${reached.positionId}
       BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`,
    )
    await expect(runInDurableObject(keeper(), instance => instance.runCycle())).rejects.toThrow('the disk is full')
    await sql('DROP TRIGGER full')
    expect(await lastOutcome(found.trader, found.positionId)).toMatchObject(executed)
    await keeper().runCycle()
    expect(await lastOutcome(reached.trader, reached.positionId)).toMatchObject(executed)
  })

  it('fires the next rule of a position at once, however many others were sold a moment ago', async () => {
    const { trader, positionId, moveTo } = await opened('-500:5000,-900:10000')
    await moveTo(0.949)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject({ ...executed, ruleIndex: 0 })
    await moveTo(0.945)
    await keeper().runCycle() // the events of the exit are read
    await sql(
      `UPDATE position SET watched_until = (SELECT watched_until + 1 FROM position WHERE id = ?1)
       WHERE closed_at IS NULL AND id BETWEEN ?2 AND ?2 + 1499`,
      Number(positionId),
      FIRST_FILLER + 6_000,
    )
    await moveTo(0.9)
    await keeper().runCycle()
    await sql('UPDATE position SET watched_until = 0 WHERE id >= ?', FIRST_FILLER)
    expect(await lastOutcome(trader, positionId)).toMatchObject({ ...executed, ruleIndex: 1 })
  })

  it('visits few rows in a cycle', async () => {
    await keeper().runCycle()
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

  it('reads positions that wait for something else than a price in turns', async () => {
    const first = FIRST_FILLER + 9_000
    const countOpen = () =>
      runInDurableObject(
        keeper(),
        (_, { storage }) =>
          storage.sql.exec('SELECT id FROM position WHERE closed_at IS NULL AND id >= ?', first).toArray().length,
      )
    await sql('UPDATE position SET watched_until = 9007199254740991 WHERE id >= ?', first)
    await sweepAfter(FIRST_FILLER)
    expect(await countOpen()).toBe(1_000)
    // The chain does not know the fillers, so those that are read are closed.
    await keeper().runCycle()
    const left = await countOpen()
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(1_000)
    await keeper().runCycle()
    expect(await countOpen()).toBe(0)
  })

  it('says that a price is stale for positions that it does not read', async () => {
    const { trader, positionId, moveTo } = await opened('-500:10000')
    await chain.increaseTime(MAX_PRICE_AGE + 60)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'deferred', reason: 'priceStale' })
    await moveTo(1)
    await keeper().runCycle()
    expect(await lastOutcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
  })
})

it('selects every position with a due exit by its triggers', () => {
  const random = randomOf('price triggers')
  let due = 0
  for (let round = 0; round < 20_000; round++) {
    const cost = BigInt(random.integer(0, 3) === 0 ? random.integer(1, 2_000) : random.integer(1, 1e9))
    const price = BigInt(random.integer(1, 1e9)) * BigInt(10 ** random.integer(0, 6))
    const decimals = random.integer(6, 18)
    const position: WatchedPosition = {
      positionId: 1n,
      agentId: 1n,
      vault: '0x01',
      token: '0x02',
      // A price near what was paid, so that triggers on both sides are met.
      tokenAmount:
        (cost * 100n * 10n ** BigInt(decimals) * BigInt(random.integer(8_000, 12_000))) / 10_000n / price + 1n,
      maxSlippageBps: 100,
      entryPriceUsdc: price / 100n + 1n,
      usdcCostBasis: cost,
      status: PositionStatus.Open,
      nextRuleIndex: random.integer(0, 1),
      exitRules: [
        { triggerType: TriggerType.StopLoss, triggerBps: BigInt(-random.integer(1, 3_000)), exitBps: 10_000 },
        { triggerType: TriggerType.TakeProfit, triggerBps: BigInt(random.integer(1, 3_000)), exitBps: 10_000 },
      ],
      closingSince: 0n,
      dueExit: random.integer(0, 1) === 0 ? undefined : { since: 0, seenAt: 0, ruleIndex: 0, tokensLeft: 0n },
    }
    const quote = { price, updatedAt: 0n, roundId: 1n, quoted: true, stale: false, at: 0n }
    const session = { symbol: 'WETH', at: 0n, respectSessions: false }
    if (decideExit(position, { quote, decimals, tradingPaused: false }, session) !== 'due') continue
    due++
    const { below, above } = newEntry(position, decimals).triggers
    expect((below !== undefined && price <= below) || (above !== undefined && price >= above)).toBe(true)
  }
  expect(due).toBeGreaterThan(1_000)
})
