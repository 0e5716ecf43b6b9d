import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createScene } from '../support/scene.ts'

// A chain that makes blocks on demand, as 46630 does, with prices from signed reports: those of now are from the future
// of its newest block.

/** The oracle takes reports from five seconds ahead of a block; below 30, no other chain's block counts as old. */
const QUIET_SECONDS = 8

let devnet: Devnet
let worker: Worker

beforeAll(async () => {
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  devnet = await startDevnet({ baseUrl, priceSource: 'reports', emptyBlockMs: 600_000 })
  devnet.marketMaker.pause()
  const vars = {
    ...workerVars(devnet.deployment),
    BLOCKS_ON_DEMAND: 'true',
    KEEPER_ENABLED: 'false',
  }
  worker = await startWorker({ port, vars })
})
afterAll(async () => {
  await worker?.stop()
  await devnet?.stop()
})

const timeOf = async (blockTag: 'latest' | 'pending') => Number((await devnet.client.getBlock({ blockTag })).timestamp)

/** Waits until the newest block is old, and lets the provider of reports say what it observes then. */
async function reportAfterQuiet(): Promise<void> {
  const newest = await timeOf('latest')
  await expect.poll(() => timeOf('pending'), { timeout: 30_000 }).toBeGreaterThanOrEqual(newest + QUIET_SECONDS)
  expect(await timeOf('latest')).toBe(newest)
  const body = JSON.stringify({ observedAt: await timeOf('pending') })
  expect((await fetch(`${devnet.deployment.reports?.url}/test/NVDA`, { method: 'POST', body })).status).toBe(200)
}

it('trades on signed reports pass however long the chain has made no block', async () => {
  const { register, trade } = createScene(worker.url, devnet.deployment)
  const agent = await register(1, 'Patient', 'genesis')
  await reportAfterQuiet()
  const { positionId } = await trade(agent, 'open', { symbol: 'NVDA', usdcAmount: '50', exits: '-2000:10000' })
  await reportAfterQuiet()
  expect(await trade(agent, 'reduce', { positionId, exitBps: '10000' })).toMatchObject({ positionId })
})
