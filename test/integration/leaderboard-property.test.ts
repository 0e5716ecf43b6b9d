import { abortAllDurableObjects, evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { CandleInterval } from '@agent-trading-service/protocol/candles'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import type { Account } from '../../devnet/accounts.ts'
import { readLoggedHistory } from '../../packages/cli/src/leaderboard/logged-history.ts'
import { type ServedLeaderboard, verifyLeaderboard } from '../../packages/cli/src/leaderboard/verify-leaderboard.ts'
import { type ServedStatistics, verifyStatistics } from '../../packages/cli/src/leaderboard/verify-statistics.ts'
import {
  type ServedVaultStatistics,
  verifyVaultStatistics,
} from '../../packages/cli/src/leaderboard/verify-vault-statistics.ts'
import { chain, sign } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { node, ownedBy } from '../support/history-oracle.ts'
import { candlesOfPosts, equityOfLogs, toCandles } from '../support/logged-figures.ts'
import { reorgChain } from '../support/reorg-chain.ts'
import {
  ask,
  migrateOracle,
  migrateRouter,
  oracle,
  postLate,
  postPrice,
  promote,
  refreshPrices,
  restoreFirst,
  router,
  waiveFirstLoss,
} from '../support/replaced-contracts.ts'
import { type Random, randomOf } from '../support/seeded-random.ts'
import { call, deployment, type Input, type OperationId } from '../support/surfaces.ts'

// Random trades on paper and with real capital, prices, late posts, promotions, migrations of oracle and router, and
// hours, with reorgs, crashes and replays of the indexer. What the service serves must equal what the logs of the chain
// say. Transactions are sent directly, because lanes would send withdrawn ones again. A comparison is that of one
// served figure.

const isLong = inject('isLong')
const TRADES = isLong ? 500 : 15
const TRADES_PER_CHECK = isLong ? 20 : 8
/** What `npm run test:long` must reach, with no difference. */
const MIN_COMPARISONS = isLong ? 200_000 : 1_000
const { accounts, contracts, tokens, vaults } = deployment
const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const
const manager = { address: contracts.PositionManager, abi: positionManagerAbi } as const
/** Genesis has paper, frontier real capital. The pool of COST is so thin that an exit fills in parts. */
const symbolsOf = { genesis: ['NVDA', 'AAPL', 'MSFT', 'COST'], frontier: ['NVDA', 'META', 'PLTR'] } as const
const symbols = [...new Set(Object.values(symbolsOf).flat())]
const intervals: CandleInterval[] = ['5m', '15m', '1h', '1d']
const traders = accounts.agents.slice(4, 8)
const agentIds: string[] = []
const initialPrices = new Map<string, bigint>()
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const anvil = (method: string, params: unknown[]) => node.request({ method, params } as never)
const blockNumber = async () => Number(await node.getBlockNumber({ cacheTime: 0 }))
const addressOf = (symbol: string) => tokens[symbol] as `0x${string}`
let tradeCount = 0
let comparisons = 0
const verified = { rpcUrl: deployment.rpcUrl, contracts: deployment.contracts, fromBlock: 0n }

beforeAll(async () => {
  for (const [index, owner] of traders.entries()) {
    const { body } = await call('getRegistrationQuote', {
      signer: owner.address,
      vault: vaults[vaultOf(index)],
      name: 'ranked',
      metadataURI: 'https://agents.example/ranked.json',
    })
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = body.typedData.message
    const signature = await sign(privateKeyToAccount(owner.privateKey), body.typedData)
    const args = [vault, name, metadataURI, signer, linkERC8004, BigInt(erc8004AgentId), BigInt(deadline), signature]
    await chain.send(accounts.relayer, { ...registry, functionName: 'selfRegisterAgent', args: args as never })
    agentIds.push((await ownedBy(owner.address)).at(-1) as string)
  }
  for (const symbol of symbols) {
    const [price] = await node.readContract({
      ...(await oracle()),
      functionName: 'peekPrice',
      args: [addressOf(symbol)],
    })
    initialPrices.set(symbol, price)
  }
  await waiveFirstLoss()
  await anvil('anvil_mine', ['0x40', '0x0']) // no reorg is deep enough to withdraw the registrations
})

afterAll(async () => {
  await restoreFirst()
  for (const [symbol, price] of initialPrices) await postPrice(addressOf(symbol), price)
})

/** Half of the agents are of each vault. */
const vaultOf = (index: number): keyof typeof symbolsOf => (index % 2 === 0 ? 'genesis' : 'frontier')

/** Signs a quote and sends it to the router. A refused quote or a revert has no effect. */
async function trade(agentId: string, quote: OperationId, functionName: string, input: Input) {
  const { status, body } = await ask(quote, { agentId, ...input })
  if (status !== 200) return
  const account = privateKeyToAccount((traders[agentIds.indexOf(agentId)] as Account).privateKey)
  const signature = await sign(account, body.typedData)
  const exits = (body.body.exits ?? []).map((rule: Body) => ({
    triggerType: rule.triggerBps < 0 ? 0 : 1,
    triggerBps: BigInt(rule.triggerBps),
    exitBps: rule.exitBps,
  }))
  const args = [{ ...body.typedData.message, exits }, signature]
  await chain.send(accounts.executor, { ...(await router()), functionName, args } as never).then(
    () => tradeCount++,
    () => {},
  )
}

const openIds = (agentId: string) =>
  node.readContract({ ...manager, functionName: 'getOpenPositionIds', args: [BigInt(agentId)] })

async function tradeAtRandom(random: Random): Promise<void> {
  const agentId = random.pick(agentIds)
  const ids = await openIds(agentId)
  const [positionId] = ids.length > 0 ? [`${random.pick(ids)}`] : []
  if (positionId === undefined || (ids.length < 3 && random.chance(0.4)))
    return trade(agentId, 'getTradeIntentQuote', 'openPosition', {
      symbol: random.pick(symbolsOf[vaultOf(agentIds.indexOf(agentId))]),
      usdcAmount: `${random.integer(5, 60)}`,
      exits: random.pick(['-60:5000,-90:10000', '120:5000,-95:10000']),
    })
  if (random.chance(0.3))
    return trade(agentId, 'getAddIntentQuote', 'addToPosition', { positionId, usdcAmount: '7.25' })
  const exitBps = random.pick([2_500, 6_000, 10_000])
  return trade(agentId, 'getReduceIntentQuote', 'reducePosition', { positionId, exitBps })
}

/** Posts a price near the initial one, because the pools do not follow, and fires the exits that it makes due. */
async function movePrice(random: Random): Promise<void> {
  const symbol = random.pick(symbols)
  const next = ((initialPrices.get(symbol) ?? 0n) * BigInt(random.pick([9_940, 9_965, 10_000, 10_030]))) / 10_000n
  if (random.chance(0.7)) await postPrice(addressOf(symbol), next)
  else await postLate(addressOf(symbol), next, random.integer(20, 1_500))
  const ids = (await Promise.all(agentIds.map(openIds))).flat()
  await chain.send(accounts.keeper, { ...(await router()), functionName: 'executeExits', args: [ids] })
}

/** Lets hours pass. Some of them are without a fresh price, which is a gap. */
async function passHours(random: Random): Promise<void> {
  await chain.increaseTime(random.integer(1, 5) * 3_600)
  await refreshPrices()
}

const migrate = (random: Random): Promise<void> => (random.chance(0.5) ? migrateOracle() : migrateRouter())

/** Lets the indexer read the chain again from its first block. */
async function replay(): Promise<void> {
  const head = await blockNumber()
  await indexer().replay()
  for (let cursor = -1; cursor < head; ) cursor = (await indexer().catchUp()).cursor ?? cursor
}

async function reorg(random: Random): Promise<void> {
  const ancestor = await blockNumber()
  await tradeAtRandom(random)
  if (random.chance(0.7)) await indexer().fold()
  await reorgChain(ancestor - random.integer(4, 12))
}

async function crash(random: Random): Promise<void> {
  const sampled = indexer()
    .fold()
    .catch(() => {})
  await (random.chance(0.5) ? abortAllDurableObjects() : evictDurableObject(indexer()))
  await sampled
}

async function readPages(input: Input): Promise<ServedLeaderboard[]> {
  const pages: ServedLeaderboard[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { status, body } = await ask('getLeaderboard', { ...input, limit: 3, ...(cursor && { cursor }) })
    expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
    pages.push(body as never)
    cursor = body.nextCursor
  }
  return pages
}

async function expectVerified(input: Input): Promise<number> {
  const pages = await readPages(input)
  const { entries, differences } = await verifyLeaderboard(verified, pages, {})
  expect(differences).toEqual([])
  const [entry = {}] = pages.flatMap(({ entries }) => entries)
  comparisons += entries * Object.keys(entry).length
  return entries
}

/** Compares the statistics of all agents in a period with the logs. */
async function expectStatistics(period: string): Promise<void> {
  for (const agentId of agentIds) {
    const { status, body } = await ask('getAgentStats', { agentId, period })
    expect({ status, body }).toMatchObject({ status: 200, body: { agentId, period, lagBlocks: 0 } })
    const { figures, differences } = await verifyStatistics(verified, body as ServedStatistics)
    expect(differences).toEqual([])
    expect(figures).toBeGreaterThan(20)
    comparisons += figures
  }
}

/** Compares the statistics of all vaults with the logs. */
async function expectVaultStatistics(): Promise<void> {
  for (const id of Object.keys(deployment.vaults)) {
    const { status, body } = await ask('getVaultStats', { id })
    expect({ status, body }).toMatchObject({ status: 200, body: { vaultId: id, lagBlocks: 0 } })
    const { figures, differences } = await verifyVaultStatistics(verified, body as ServedVaultStatistics)
    expect(differences).toEqual([])
    expect(figures).toBeGreaterThan(10)
    comparisons += figures
  }
}

/** Compares the equity of all agents and the candles of their tokens with the logs. */
async function expectSeries(): Promise<void> {
  const history = await readLoggedHistory(verified, await node.getBlockNumber({ cacheTime: 0 }))
  for (const agentId of agentIds)
    for (const interval of ['5m', '1h']) {
      const { status, body } = await ask('getEquityHistory', { agentId, interval })
      expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
      for (const { timestamp, blockNumber: _, priceStale: __, ...figures } of body.points) {
        expect({ timestamp, ...figures }).toEqual({ timestamp, ...equityOfLogs(history, agentId, Number(timestamp)) })
        comparisons += Object.keys(figures).length
      }
    }
  for (const symbol of symbols)
    for (const interval of intervals) {
      const { status, body } = await ask('getCandles', { symbol, interval, limit: 1_000 })
      expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
      const posts = history.prices.filter(({ token }) => token === addressOf(symbol))
      const all = [...candlesOfPosts(posts, interval)]
      const served = [...toCandles(body)]
      expect(served).toEqual(all.slice(all.length - served.length))
      comparisons += served.length * 5
    }
}

const orders: Input[] = [
  { period: 'day', sort: 'return' },
  { period: 'week', sort: 'drawdown' },
  { period: 'month', sort: 'calmar' },
  { period: 'all', sort: 'sharpe' },
]

it(`leaderboard verification equals the served one after ${TRADES} random trades with reorganizations`, {
  timeout: 7_200_000,
}, async () => {
  const random = randomOf('leaderboard', 1)
  const rare = [migrate, (random: Random) => promote(random.pick(agentIds)), replay]
  const steps = [movePrice, movePrice, movePrice, passHours, passHours, reorg, crash]
  for (let checked = 0; tradeCount < TRADES || comparisons < MIN_COMPARISONS; ) {
    await tradeAtRandom(random)
    if (random.chance(0.4)) await random.pick([...steps, random.pick(rare)])(random)
    if (tradeCount - checked < TRADES_PER_CHECK) continue
    checked = tradeCount
    await indexer().fold()
    for (const order of orders) await expectVerified(order)
    for (const period of ['day', 'all']) await expectStatistics(period)
    await expectVaultStatistics()
    await expectSeries()
    if (isLong) console.log(`${comparisons} comparisons after ${tradeCount} trades`)
  }
  const countReorgs = () => env.HISTORY.prepare('SELECT count(*) AS count FROM reorgs').first<number>('count')
  do {
    await reorg(random)
    await indexer().fold()
  } while ((await countReorgs()) === 0)
  // A reorg may have withdrawn all trades of an agent.
  expect(await expectVerified({ period: 'all', sort: 'return' })).toBeGreaterThan(1)
  const { trades } = await readLoggedHistory(verified, await node.getBlockNumber({ cacheTime: 0 }))
  const kinds = Map.groupBy(
    trades,
    ({ type, capitalMode }) => `${type} ${capitalMode === CapitalMode.Real ? 'real' : 'paper'}`,
  )
  const counts = [...kinds].map(([kind, { length }]) => `${kind} ${length}`)
  console.log(`${comparisons} comparisons, 0 differences; ${await countReorgs()} reorgs; ${counts.join(', ')}`)
  expect(comparisons).toBeGreaterThanOrEqual(MIN_COMPARISONS)
})
