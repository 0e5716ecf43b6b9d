import { env } from 'cloudflare:workers'
import { createPublicClient, http } from 'viem'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { chain, newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { disarmKeeper } from '../support/keeper-cycles.ts'
import { reports } from '../support/report-control.ts'
import { callOverHttp, deployment } from '../support/surfaces.ts'

// HTTP only: the connection is the keeper's. It reads prices once a minute by itself: what happens sooner was sent.

const node = createPublicClient({ transport: http(deployment.rpcUrl), cacheTime: 0, pollingInterval: 100 })
const keeper = () => env.KEEPER.get(env.KEEPER.idFromName(`${deployment.chainId}:${deployment.contracts.TradeRouter}`))
const connections = async () => (await reports.load()).connections
const automation = async ({ agentId }: Trader, positionId: string): Promise<Body> =>
  (await callOverHttp('getPositionAutomation', { agentId, positionId })).body
const outcome = async (trader: Trader, positionId: string) => (await automation(trader, positionId)).lastOutcome
const now = async () => Number((await node.getBlock()).timestamp)

/** Opens a position with a stop-loss of 8 % that the keeper watches. */
async function watchedPosition() {
  const trader = await newTrader()
  const positionId = await openPosition(trader, { usdcAmount: '90', exits: '-800:10000' })
  await keeper().changed({
    positions: [{ block: await node.getBlockNumber(), positionIds: [BigInt(positionId)] }],
    isUrgent: true,
  })
  await expect.poll(() => outcome(trader, positionId)).toMatchObject({ outcome: 'notReached' })
  return { trader, positionId }
}

beforeEach(async () => {
  await reports.fail()
  await reports.say('NVDA', { usd: '180.25' })
  await chain.setPrice('NVDA', '180.25') // and the pool follows
  const time = await now()
  await expect.poll(now).toBeGreaterThan(time + 2)
})
afterAll(() => disarmKeeper(keeper()))

it('a keeper keeps one connection to the provider of reports while a position needs it, and fetches nothing meanwhile', async () => {
  await keeper().changed()
  expect(await connections()).toBe(0)
  const first = await watchedPosition()
  const second = await watchedPosition()
  await expect.poll(connections).toBe(1)
  const { requests } = await reports.load()
  const time = await now()
  await expect.poll(now).toBeGreaterThan(time + 3)
  expect(await reports.load()).toEqual({ connections: 1, requests })
  for (const { trader, positionId } of [first, second])
    expect((await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10_000 })).status).toBe(201)
  const positionIds = [first, second].map(({ positionId }) => BigInt(positionId))
  await keeper().changed({ positions: [{ block: await node.getBlockNumber(), positionIds }], isUrgent: true })
  await expect.poll(connections).toBe(0)
})

it('a keeper fires the exit that a sent report reaches at once, without waiting for its next read of prices', async () => {
  const { trader, positionId } = await watchedPosition()
  await expect.poll(connections).toBe(1)
  const said = await node.getBlockNumber()
  await reports.say('NVDA', { usd: '160' })
  await expect.poll(async () => (await outcome(trader, positionId)).outcome, { interval: 20 }).toBe('executed')
  const { transactionHash } = await outcome(trader, positionId)
  const { blockNumber } = await node.getTransactionReceipt({ hash: transactionHash })
  expect(blockNumber - said).toBeLessThanOrEqual(20n) // `npm run bench:scale` measures two
})

it('a keeper runs no cycle for reports of a share whose prices reach no exit of its token', async () => {
  await watchedPosition()
  await expect.poll(connections).toBe(1)
  const evaluations: unknown[] = []
  for (const usd of ['180.25', '179', '181.5', '178.4']) {
    await reports.say('NVDA', { usd })
    const time = await now()
    await expect.poll(now).toBeGreaterThan(time + 1)
    evaluations.push((await keeper().status()).lastEvaluation)
  }
  expect(new Set(evaluations.map(evaluation => JSON.stringify(evaluation))).size).toBe(1)
})

it('a keeper whose provider stalls on an open connection notices the age and fetches the reports', async () => {
  const { trader, positionId } = await watchedPosition()
  await expect.poll(connections).toBe(1)
  await reports.fail('stalled')
  await reports.say('NVDA', { usd: '160' })
  await expect.poll(async () => (await outcome(trader, positionId)).outcome, { timeout: 30_000 }).toBe('executed')
})

it('a keeper whose connection breaks connects again and fetches what was reported meanwhile', async () => {
  const { trader, positionId } = await watchedPosition()
  await expect.poll(connections).toBe(1)
  await reports.fail('down')
  await expect.poll(connections).toBe(0)
  await reports.say('NVDA', { usd: '160' })
  await reports.fail()
  await expect.poll(async () => (await outcome(trader, positionId)).outcome, { timeout: 45_000 }).toBe('executed')
})
