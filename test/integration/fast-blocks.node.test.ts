import type { DatabaseSync } from 'node:sqlite'
import { type AbiEvent, type Address, numberToHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createIndexer } from '../../src/history/run-follower.ts'
import { type ProviderProfile, profiles } from '../providers/profiles.ts'
import { type ProviderProxy, startProviderProxy } from '../providers/provider-proxy.ts'
import { createDevnetAgents } from '../support/devnet-agents.ts'
import { createSqliteD1 } from '../support/sqlite-d1.ts'

// A chain with ten blocks a second, most of them without transactions: what the index asks of a node while somebody
// waits for events, and what it does with the answers of nodes that lag, freeze or leave something out.

const BLOCKS_A_SECOND = 10
/** How long the pace is measured, and then how long the index is observed, by the clock of the chain. */
const WARM_UP_SECONDS = 15
const OBSERVED_SECONDS = 30

const devnet = await startDevnet({ blockMs: 20 })
await devnet.setMining(false)
const agents = createDevnetAgents(devnet)
afterAll(() => devnet.stop())

const send = (method: string, params: unknown[]) =>
  devnet.client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({ method, params })
const newestBlock = async () => Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))

/** Makes the blocks of a second, which share a timestamp. */
async function mineSecond(): Promise<void> {
  await send('evm_increaseTime', [1])
  await send('anvil_mine', [numberToHex(BLOCKS_A_SECOND), '0x0'])
}

async function openIndexer(profile: ProviderProfile, seed = 1, otherUrls: string[] = []) {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed })
  const { db, sqlite } = createSqliteD1()
  const RPC_URL = [proxy.url, ...otherUrls].join()
  const { chain, trading } = parseConfig({ ...workerVars(devnet.deployment), RPC_URL })
  if (chain === undefined) throw new Error('The chain is not configured.')
  const indexer = createIndexer(db, { chain, trading }, { onAppend() {}, onReorg() {} })
  indexer.watch(600_000)
  const step = () => indexer.step().catch(() => undefined)
  /** Runs a step each second of the chain, as the alarm does. */
  async function follow(seconds: number) {
    for (let second = 0; second < seconds; second++) {
      await mineSecond()
      await step()
    }
  }
  while ((await step())?.hasMore !== false);
  await follow(WARM_UP_SECONDS)
  return { proxy, sqlite, indexer, step, follow }
}

const callsOf = ({ counts }: ProviderProxy) => [...counts.calls.values()].reduce((sum, count) => sum + count, 0)

const POSTS = priceOracleAbi.filter(
  item => item.type === 'event' && ['PriceUpdated', 'PriceForced'].includes(item.name),
) as AbiEvent[]
const readPosts = (toBlock: number) =>
  devnet.client.getLogs({
    address: devnet.deployment.contracts.PriceOracle as Address,
    events: POSTS,
    fromBlock: 0n,
    toBlock: BigInt(toBlock),
  })
const postsUpTo = async (toBlock: number) => (await readPosts(toBlock)).length
const indexedPosts = (sqlite: DatabaseSync) =>
  Number(sqlite.prepare('SELECT count(*) AS count FROM prices').get()?.count)
const cursorOf = (sqlite: DatabaseSync) => Number(sqlite.prepare('SELECT block FROM cursor').get()?.block)

let posts = 0
/** Posts a price. Returns its block. */
async function post(): Promise<number> {
  await devnet.setMining(true)
  await devnet.setPrice('NVDA', `${150 + (posts++ % 2)}`)
  await devnet.setMining(false)
  return Number((await readPosts(await newestBlock())).at(-1)?.blockNumber)
}

it('an index that is watched asks a node for at most one call a second', async () => {
  const { proxy, follow } = await openIndexer(profiles['no-overrides'])
  const [calls, block] = [callsOf(proxy), await newestBlock()]
  await follow(OBSERVED_SECONDS)
  expect((callsOf(proxy) - calls) / ((await newestBlock()) - block)).toBeLessThan(0.11)
  await proxy.stop()
})

it('an event is indexed with the first step after its block, for a few calls, after hundreds of blocks without one', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'])
  await follow(OBSERVED_SECONDS)
  for (let round = 0; round < 3; round++) {
    const posted = await post()
    const calls = callsOf(proxy)
    await step()
    expect(cursorOf(sqlite)).toBeGreaterThanOrEqual(posted - 1)
    expect(indexedPosts(sqlite)).toBe(await postsUpTo(posted))
    expect(callsOf(proxy) - calls).toBeLessThan(12)
    await follow(3)
  }
  await proxy.stop()
})

it.each([1, 2, 3])('replicas up to five blocks apart cost the index no event: seed %i', async seed => {
  const profile = { ...profiles['lagging-pool'], lagBlocks: [0, 5] as const }
  const { proxy, sqlite, step } = await openIndexer(profile, seed)
  for (let round = 0; round < 15; round++) {
    await post()
    await mineSecond()
    await step()
    // Whatever a replica answers, the index has all posts up to its cursor.
    const cursor = cursorOf(sqlite)
    expect(indexedPosts(sqlite)).toBe(await postsUpTo(cursor))
  }
  const last = await newestBlock()
  await expect
    .poll(
      async () => {
        await step()
        return indexedPosts(sqlite)
      },
      { timeout: 120_000 },
    )
    .toBe(await postsUpTo(last))
  await proxy.stop()
})

it('a node that leaves out the logs of the newest blocks does not move the index past them', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'])
  await post()
  await follow(1)
  const known = cursorOf(sqlite)
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    const { toBlock } = (filter ?? {}) as { toBlock?: string }
    if (method !== 'eth_getLogs' || toBlock !== 'latest') return reply
    const logs = (reply.result ?? []) as { blockNumber: string }[]
    return { result: logs.filter(({ blockNumber }) => Number(blockNumber) <= known) }
  })
  const posted = await post()
  await step()
  expect(cursorOf(sqlite)).toBeLessThan(posted)
  proxy.distort(undefined)
  await step()
  expect(indexedPosts(sqlite)).toBe(await postsUpTo(posted))
  await proxy.stop()
})

it('a node that hides the logs of the block with the newest event is not believed', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'])
  await follow(1)
  const before = indexedPosts(sqlite)
  let isHiding = true
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    const { blockHash, toBlock } = (filter ?? {}) as { blockHash?: string; toBlock?: string }
    if (!isHiding || method !== 'eth_getLogs' || toBlock === 'latest') return reply
    return blockHash === undefined ? { error: { code: -32008, message: 'Response is too big' } } : { result: [] }
  })
  const posted = await post()
  await step()
  expect([cursorOf(sqlite) < posted, indexedPosts(sqlite)]).toEqual([true, before])
  isHiding = false
  await expect
    .poll(
      async () => {
        await step()
        return indexedPosts(sqlite)
      },
      { timeout: 60_000 },
    )
    .toBe(await postsUpTo(posted))
  await proxy.stop()
})

it('a node that lists a later event and leaves out an earlier one is not believed', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'])
  await follow(1)
  const known = await newestBlock()
  const [hidden, shown] = [await post(), await post()]
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    const { toBlock } = (filter ?? {}) as { toBlock?: string }
    if (method !== 'eth_getLogs' || toBlock !== 'latest') return reply
    const logs = (reply.result ?? []) as { blockNumber: string }[]
    return { result: logs.filter(({ blockNumber }) => Number(blockNumber) <= known || Number(blockNumber) >= shown) }
  })
  for (let steps = 0; steps < 6; steps++) {
    await step()
    const cursor = cursorOf(sqlite)
    expect(indexedPosts(sqlite)).toBe(await postsUpTo(cursor))
  }
  expect(shown).toBeGreaterThan(hidden)
  expect(cursorOf(sqlite)).toBeGreaterThanOrEqual(shown)
  await proxy.stop()
})

/** Hides the logs of a block from every list of a range, the same way each time. */
const hideIn =
  (block: number): Parameters<ProviderProxy['distort']>[0] =>
  ({ method, params: [filter] = [] }, reply) => {
    const { blockHash } = (filter ?? {}) as { blockHash?: string }
    if (method !== 'eth_getLogs' || blockHash !== undefined || reply.result === undefined) return reply
    return { result: (reply.result as { blockNumber: string }[]).filter(log => Number(log.blockNumber) !== block) }
  }

it('a node that hides an earlier event the same way each time is not believed if another node lists it', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'], 1, [devnet.rpcUrl])
  await follow(1)
  const hidden = await post()
  proxy.distort(hideIn(hidden))
  const shown = await post()
  await expect
    .poll(
      async () => {
        await step()
        expect(indexedPosts(sqlite)).toBe(await postsUpTo(cursorOf(sqlite)))
        return cursorOf(sqlite)
      },
      { timeout: 60_000 },
    )
    .toBeGreaterThanOrEqual(shown)
  await proxy.stop()
})

it('a trade of an own receipt that the only node hides the same way each time is found by the audit', async () => {
  const { proxy, sqlite, indexer, step, follow } = await openIndexer(profiles['no-overrides'])
  const tradesIn = (block: number) =>
    Number(sqlite.prepare('SELECT count(*) AS count FROM trades WHERE block = ?').get(block)?.count)
  const reach = (block: number) =>
    expect
      .poll(
        async () => {
          await step()
          return cursorOf(sqlite)
        },
        { timeout: 60_000 },
      )
      .toBeGreaterThanOrEqual(block)
  await devnet.setMining(true)
  const signer = privateKeyToAccount(generatePrivateKey())
  const agentId = await agents.register('genesis', signer)
  await agents.open(agentId, signer, { symbol: 'NVDA', amount: 100_000_000n })
  await devnet.setMining(false)
  const logs = await devnet.client.request({
    method: 'eth_getLogs',
    params: [{ address: devnet.deployment.contracts.TradeRouter as Address, fromBlock: '0x0' }],
  })
  const traded = Number(logs.at(-1)?.blockNumber)
  proxy.distort(hideIn(traded))
  await follow(1)
  await reach(await post())
  expect(tradesIn(traded)).toBe(0)
  await indexer.expectOwn(logs as Parameters<typeof indexer.expectOwn>[0])
  await indexer.audit()
  await reach(traded)
  expect(tradesIn(traded)).toBe(1)
  await proxy.stop()
})

it('a node that refuses half of the requests for logs delays no event by more than a few steps, and fails none', async () => {
  const { proxy, sqlite, indexer, follow } = await openIndexer(profiles['robinhood-public'])
  await follow(1)
  const calls = callsOf(proxy)
  const posted = await post()
  for (let steps = 0; steps < 30; steps++) {
    await mineSecond()
    await indexer.step()
  }
  expect(indexedPosts(sqlite)).toBe(await postsUpTo(posted))
  expect(callsOf(proxy) - calls).toBeLessThan(60)
  await proxy.stop()
})

it('a reorg that takes the newest event is followed, although the chain makes no other', async () => {
  const { proxy, sqlite, step, follow } = await openIndexer(profiles['no-overrides'])
  const posted = await post()
  await step()
  expect(indexedPosts(sqlite)).toBe(await postsUpTo(posted))
  const depth = (await newestBlock()) - posted + 2
  await send('anvil_rollback', [depth])
  await send('anvil_dropAllTransactions', [])
  await send('anvil_mine', [numberToHex(depth + 5), '0x0'])
  await follow(8)
  expect(sqlite.prepare('SELECT count(*) AS count FROM reorgs').get()).toEqual({ count: 1 })
  expect(indexedPosts(sqlite)).toBe(await postsUpTo(await newestBlock()))
  await proxy.stop()
})
