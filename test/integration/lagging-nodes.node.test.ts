import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { type AbiEvent, type Hex, keccak256, numberToHex, pad } from 'viem'
import { afterAll, describe, expect, inject, it, vi } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { type Block, createChain } from '../../src/chain/configured-chain.ts'
import { readTree } from '../../src/chain/read-tree.ts'
import { type ChainConfig, parseConfig } from '../../src/config/config.ts'
import type { FollowerMemory } from '../../src/history/followed-contracts.ts'
import { createSnapshotReader } from '../../src/history/read-snapshot.ts'
import { createIndexer } from '../../src/history/run-follower.ts'
import { takeDeltas } from '../../src/metrics/recorder.ts'
import { profiles } from '../providers/profiles.ts'
import { type Reply, startProviderProxy } from '../providers/provider-proxy.ts'
import { createSqliteD1 } from '../support/sqlite-d1.ts'

const devnet = await startDevnet({ blockMs: 100 })
afterAll(() => devnet.stop())

function openIndexer(rpcUrl: string) {
  const { db, sqlite } = createSqliteD1()
  const { chain, trading } = parseConfig({ ...workerVars(devnet.deployment), RPC_URL: rpcUrl })
  if (chain === undefined) throw new Error('The chain is not configured.')
  let remembered: Awaited<ReturnType<FollowerMemory['read']>>
  const memory: FollowerMemory = {
    read: async () => structuredClone(remembered),
    async write(value) {
      remembered = structuredClone(value)
    },
  }
  /** Opens the indexer as after an eviction of its object. */
  const open = () => createIndexer(db, { chain, trading }, { onAppend() {}, onReorg() {} }, memory)
  const indexer = open()
  const { readSnapshot } = createSnapshotReader(db, createChain(chain, trading), indexer.catchUp)
  /** Reads the index as of a block. */
  const readAsOf = async (block: Block) => (await readSnapshot(block, () => [])).facts
  return { sqlite, indexer, open, readAsOf }
}

const { chain: ofOperations, trading } = parseConfig(workerVars(devnet.deployment))
/** Reads the newest block as operations do. */
const newestBlock = async () => (await readTree(createChain(ofOperations as ChainConfig, trading), {})).block

const POSTS = priceOracleAbi.filter(
  item => item.type === 'event' && ['PriceUpdated', 'PriceForced'].includes(item.name),
) as AbiEvent[]

async function countPosts(toBlock: number): Promise<number> {
  const posts = await devnet.client.getLogs({
    address: devnet.deployment.contracts.PriceOracle as `0x${string}`,
    events: POSTS,
    fromBlock: 0n,
    toBlock: BigInt(toBlock),
  })
  return posts.length
}

const countPrices = (sqlite: DatabaseSync, toBlock: number) =>
  Number(sqlite.prepare('SELECT count(*) AS count FROM prices WHERE block <= ?').get(toBlock)?.count)

const POOLS = [
  { name: 'up to two blocks behind', profile: profiles['lagging-pool'] },
  { name: 'one block behind, with small ranges', profile: profiles.quicknode },
  { name: 'up to two blocks behind, without batches', profile: { ...profiles['lagging-pool'], maxBatch: 1 } },
]

describe.each(POOLS)('nodes $name', ({ profile }) => {
  it.each(inject('isLong') ? [1, 2, 3, 4, 5] : [1])(
    'cost the index no event, although it reads while they happen: seed %i',
    async seed => {
      const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed })
      const { indexer, sqlite } = openIndexer(proxy.url)
      const step = () => indexer.step().catch(() => {}) // the alarm repeats a step that a lagging node failed
      let isPosting = true
      const follow = (async () => {
        for (; isPosting; await step()) indexer.watch(60_000)
      })()
      for (let post = 0; post < (inject('isLong') ? 60 : 20); post++)
        await devnet.setPrice('NVDA', `${150 + (post % 2)}`)
      isPosting = false
      await follow
      const last = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
      while ((indexer.status().cursor ?? 0) < last) await step()

      expect(countPrices(sqlite, last)).toBe(await countPosts(last))
      await proxy.stop()
    },
  )
})

it('a node that is minutes behind costs the index no event either, because ranges are compared and audited', async () => {
  const profile = { ...profiles['lagging-pool'], replicas: 2, lagBlocks: [0, 300] } as const
  for (let post = 0; post < 10; post++) {
    await devnet.setPrice('NVDA', `${150 + (post % 2)}`)
    await mine(40)
  }
  await devnet.setMining(false)
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed: 2 })
  const { indexer, sqlite } = openIndexer(proxy.url)
  for (let audits = 0; audits < 10; audits++) {
    for (let steps = 0; steps < 10; steps++) await indexer.step().catch(() => {})
    await indexer.audit().catch(() => {})
  }
  const { cursor = 0 } = indexer.status()
  expect(countPrices(sqlite, cursor)).toBe(await countPosts(cursor))
  await devnet.setMining(true)
  await proxy.stop()
})

it('events that the index lacks are found by its audit, counted and read again', async () => {
  const { indexer, sqlite } = openIndexer(devnet.rpcUrl)
  indexer.watch(600_000)
  await indexer.catchUp()
  const { cursor = 0 } = indexer.status()
  const posted = await countPosts(cursor)
  expect(countPrices(sqlite, cursor)).toBe(posted)
  await indexer.audit()
  const lost = Number(sqlite.prepare('DELETE FROM prices WHERE block = (SELECT max(block) FROM prices)').run().changes)
  takeDeltas()

  await indexer.audit()
  expect(takeDeltas()).toContainEqual({ name: 'ats_index_repaired', labels: [], values: [lost] })
  expect(countPrices(sqlite, cursor)).toBe(posted - lost)
  await vi.waitFor(
    async () => {
      await indexer.catchUp()
      expect(countPrices(sqlite, cursor)).toBe(posted)
    },
    { timeout: 60_000 },
  )
})

it('a minute of blocks that nothing waits for costs an index that was evicted at most six calls of the node', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const { indexer, sqlite, open } = openIndexer(proxy.url)
  while ((await indexer.step()).hasMore);
  let unwatched = indexer
  for (let minute = 0; minute < 3; minute++) {
    await mine(60)
    const before = countCalls(proxy.counts.calls)
    unwatched = open()
    while ((await unwatched.step()).hasMore);
    expect(countCalls(proxy.counts.calls) - before).toBeLessThanOrEqual(6)
  }
  const { cursor = 0 } = unwatched.status()
  expect(countPrices(sqlite, cursor)).toBe(await countPosts(cursor))
  await proxy.stop()
})

it('after an hour without blocks the index reads on at once, although nothing waits for it', async () => {
  const { indexer } = openIndexer(devnet.rpcUrl)
  const readOn = async () => {
    while ((await indexer.step()).hasMore);
  }
  await mine(40)
  await readOn()
  const halted = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
  await devnet.increaseTime(3_600)
  await mine(20)
  await readOn()
  expect(indexer.status().cursor).toBeGreaterThan(halted)
})

it('a node that knows a block before its logs costs the index no event, because an empty list is compared with the block', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const requests = new Map<unknown, number>()
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    const { blockHash, fromBlock, toBlock } = (filter ?? {}) as { blockHash?: Hex; fromBlock?: Hex; toBlock?: Hex }
    if (method !== 'eth_getLogs' || reply.error || fromBlock !== toBlock) return reply
    const block = blockHash ?? fromBlock
    requests.set(block, (requests.get(block) ?? 0) + 1)
    return (requests.get(block) ?? 0) > 1 ? reply : { result: [] }
  })
  const { indexer, sqlite } = openIndexer(proxy.url)
  indexer.watch(600_000)
  for (let post = 0; post < 5; post++) await devnet.setPrice('NVDA', `${150 + (post % 2)}`)
  await indexer.catchUp()
  const { cursor = 0 } = indexer.status()
  expect(countPrices(sqlite, cursor)).toBe(await countPosts(cursor))
  await proxy.stop()
})

it('a provider that returns no logs by the hash of a block does not keep the index from the newest blocks', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['lagging-pool'], seed: 1 })
  proxy.distort(({ method, params: [filter] = [] }, reply) =>
    method === 'eth_getLogs' && (filter as { blockHash?: Hex }).blockHash !== undefined
      ? { error: { code: -32602, message: 'blockHash is not supported' } }
      : reply,
  )
  const { indexer, sqlite } = openIndexer(proxy.url)
  indexer.watch(600_000)
  while ((await indexer.step()).hasMore);
  await devnet.setPrice('NVDA', '151')
  const posted = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
  const step = async () => (await indexer.step().catch(() => undefined))?.cursor?.block
  await expect.poll(step).toBeGreaterThanOrEqual(posted)
  expect(countPrices(sqlite, posted)).toBe(await countPosts(posted))
  await proxy.stop()
})

it('a block whose logs no node returns whole is not taken for one without followed logs', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const { indexer, sqlite } = openIndexer(proxy.url)
  indexer.watch(600_000)
  while ((await indexer.step()).hasMore);
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    if (method !== 'eth_getLogs') return reply
    if ((filter as { blockHash?: Hex }).blockHash !== undefined) return { result: [] }
    return { error: { code: -32008, message: 'Response is too big' } }
  })
  await devnet.setPrice('NVDA', '152')
  const posted = Number(await devnet.client.getBlockNumber({ cacheTime: 0 }))
  await indexer.catchUp()
  expect(indexer.status().cursor).toBeLessThan(posted)
  proxy.distort(undefined)
  await indexer.catchUp()
  expect(indexer.status().cursor).toBeGreaterThanOrEqual(posted)
  expect(countPrices(sqlite, posted)).toBe(await countPosts(posted))
  await proxy.stop()
})

it('a provider that returns at most a thousand logs of a range, without an error, costs the index no event', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  for (let post = 0; post < 5; post++) {
    await devnet.setPrice('NVDA', `${150 + (post % 2)}`)
    await mine(20)
  }
  await mine(1_100)
  proxy.distort(({ method, params: [filter] = [] }, reply) => {
    const { fromBlock } = (filter ?? {}) as { fromBlock?: Hex }
    if (method !== 'eth_getLogs' || fromBlock === undefined) return reply
    const logs = reply.result as { blockNumber: Hex; topics: Hex[] }[]
    return { result: logs.flatMap(log => [...Array(40).fill({ ...log, topics: [pad('0x1')] }), log]).slice(0, 1_000) }
  })
  const { indexer, sqlite } = openIndexer(proxy.url)
  while ((await indexer.step()).hasMore);
  const { cursor = 0 } = indexer.status()
  expect(countPrices(sqlite, cursor)).toBe(await countPosts(cursor))
  await proxy.stop()
})

it('a provider that serves another chain for a while does not cost the index what it has', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const { indexer, sqlite } = openIndexer(proxy.url)
  while ((await indexer.step()).hasMore);
  const { cursor = 0 } = indexer.status()
  proxy.distort(({ method }, reply) => {
    if (method === 'eth_chainId') return { result: '0x1' }
    if (method !== 'eth_getBlockByNumber' || !reply.result) return reply
    const block = reply.result as { hash: Hex; parentHash: Hex }
    return { result: { ...block, hash: keccak256(block.hash), parentHash: keccak256(block.parentHash) } }
  })
  for (let steps = 0; steps < 5; steps++) {
    await mine(1)
    await indexer.step().catch(() => {})
  }
  proxy.distort(undefined)
  await mine(1)
  expect((await indexer.step()).cursor?.block).toBeGreaterThanOrEqual(cursor)
  expect(countPrices(sqlite, cursor)).toBe(await countPosts(cursor))
  expect(sqlite.prepare('SELECT count(*) AS count FROM reorgs').get()).toEqual({ count: 0 })
  await proxy.stop()
})

it('readers that wait for the same block share the calls of the node, and later ones need none', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const { indexer, readAsOf } = openIndexer(proxy.url)
  await indexer.catchUp()
  await mine(20)
  const head = await newestBlock()
  const before = countCalls(proxy.counts.calls)
  const reads = await Promise.all(Array.from({ length: 100 }, () => readAsOf(head)))
  const shared = countCalls(proxy.counts.calls) - before
  expect(reads.every(({ asOf, lagBlocks }) => asOf.number >= head.number && lagBlocks === 0)).toBe(true)
  expect(shared).toBeLessThan(100)
  await devnet.setMining(false)
  const last = await newestBlock()
  await readAsOf(last)
  const known = countCalls(proxy.counts.calls)
  for (let read = 0; read < 20; read++) expect((await readAsOf(last)).asOf).toEqual(last)
  expect(countCalls(proxy.counts.calls)).toBe(known)
  await devnet.setMining(true)
  await proxy.stop()
})

it('a read of a chain with ten blocks a second waits for its own block, and not for those after it', async () => {
  const { indexer, readAsOf } = openIndexer(devnet.rpcUrl)
  await indexer.catchUp()
  for (let read = 0; read < 10; read++) {
    const head = await newestBlock()
    const { asOf, lagBlocks } = await readAsOf(head)
    expect(lagBlocks).toBe(0)
    expect(asOf.number - head.number).toBeLessThan(10n)
  }
})

it('while a node stands still, reads end at its block, say so, and do not poll it', async () => {
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile: profiles['no-overrides'], seed: 1 })
  const { indexer, readAsOf } = openIndexer(proxy.url)
  await indexer.catchUp()
  let frozen: Reply | undefined
  proxy.distort(({ method, params: [block] = [] }, reply) => {
    if (method !== 'eth_getBlockByNumber' || block !== 'latest') return reply
    frozen ??= reply
    return frozen
  })
  await indexer.catchUp()
  const { cursor = 0 } = indexer.status()
  await mine(5)
  const head = await newestBlock()
  const before = countCalls(proxy.counts.calls)
  const start = Date.now()
  for (let read = 0; read < 3; read++) {
    const reads = await Promise.all(Array.from({ length: 30 }, () => readAsOf(head)))
    for (const { asOf, lagBlocks } of reads) {
      expect(asOf.number).toBe(BigInt(cursor))
      expect(lagBlocks).toBe(Number(head.number) - cursor)
    }
  }
  expect(Date.now() - start).toBeLessThan(3 * 4_000)
  expect(countCalls(proxy.counts.calls) - before).toBeLessThan(90)
  await proxy.stop()
})

it('an audit that waits for a node delays no read', async () => {
  let isSilent = false
  const { promise: isWaiting, resolve: waits } = Promise.withResolvers<void>()
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (isSilent && body.includes('fromBlock')) return waits() // only the audit reads ranges of the newest blocks
    const headers = { 'content-type': 'application/json' }
    response.end(await (await fetch(devnet.rpcUrl, { method: 'POST', body, headers })).text())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { indexer, readAsOf } = openIndexer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  indexer.watch(600_000)
  while ((await indexer.step()).hasMore);
  isSilent = true
  const audit = indexer.audit().catch(() => {})
  await isWaiting
  await mine(1)
  expect(await readAsOf(await newestBlock())).toMatchObject({ lagBlocks: 0 })
  server.closeAllConnections()
  await audit
  server.close()
})

const countCalls = (calls: ReadonlyMap<string, number>) => [...calls.values()].reduce((sum, count) => sum + count, 0)

/** Mines blocks one second apart. */
const mine = (blocks: number) =>
  devnet.client.request<{ Method: 'anvil_mine'; Parameters: [string, string]; ReturnType: null }>({
    method: 'anvil_mine',
    params: [numberToHex(blocks), '0x1'],
  })
