import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createIndexer } from '../../src/history/run-follower-and-sampler.ts'
import { profiles } from '../providers/profiles.ts'
import { startProviderProxy } from '../providers/provider-proxy.ts'
import { createSqliteD1 } from '../support/sqlite-d1.ts'

it('the index misses no event although nodes of the provider are up to two blocks behind', async () => {
  const devnet = await startDevnet({ mineEveryMs: 100 })
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['lagging-pool'], seed: 1 })
  const { db, sqlite } = createSqliteD1()
  const { chain, trading, headAgeMs } = parseConfig({
    ...workerVars(devnet.deployment),
    RPC_URL: proxy.url,
    HEAD_AGE_MS: '2000',
  })
  if (chain === undefined) throw new Error('The chain is not configured.')
  const indexer = createIndexer(db, { chain, trading, headAgeMs }, { onAppend() {}, onReorg() {} })
  let isPosting = true
  const follow = (async () => {
    while (isPosting) await indexer.step().catch(() => {}) // the alarm repeats a step that a lagging node failed
  })()
  for (let post = 0; post < 60; post++) await devnet.setPrice('NVDA', `${150 + (post % 2)}`)
  const last = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
  while ((indexer.status().cursor ?? 0) < last) await sleep(50)
  isPosting = false
  await follow

  const posted = await devnet.client.getContractEvents({
    address: devnet.deployment.contracts.PriceOracle as `0x${string}`,
    abi: priceOracleAbi,
    eventName: 'PriceUpdated',
    fromBlock: 0n,
    toBlock: BigInt(last),
  })
  const indexed = sqlite.prepare('SELECT count(*) AS count FROM prices WHERE block <= ?').get(last)
  expect(indexed).toEqual({ count: posted.length })
  await proxy.stop()
  await devnet.stop()
})
