import { abortAllDurableObjects, evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { CapitalMode, MandateMode } from '@agent-trading-service/protocol/enums'
import { TRADE_TYPES } from '@agent-trading-service/protocol/trade-events'
import { erc20Abi, formatUnits, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import type { Account } from '../../devnet/accounts.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createSnapshotReader } from '../../src/history/read-snapshot.ts'
import { chain, sign } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { equityAt, worthAt } from '../support/chain-past.ts'
import { closedOf, node, ownedBy, tradesOf } from '../support/history-oracle.ts'
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

// Random trades, prices, transfers, promotions, migrations of oracle and router, reorgs, crashes and replays of the
// indexer. After each of them, every response from the index must equal what the chain has. Transactions are sent
// directly, because lanes would send withdrawn ones again. The indexer is configured with the first oracle and router,
// whichever are in use.

const isLong = inject('isLong')
const SEEDS = isLong ? [1, 2, 3] : [3]
const STEPS = isLong ? 40 : 8
const { accounts, contracts, tokens, vaults } = deployment
const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const
const manager = { address: contracts.PositionManager, abi: positionManagerAbi } as const
const ownerControls = { address: contracts.OwnerControls as `0x${string}`, abi: ownerControlsAbi } as const
const allocations = { address: contracts.AllocationManager, abi: allocationManagerAbi } as const
/** A mandate that lets an agent trade again. */
const NO_LIMITS = {
  mode: MandateMode.Trade,
  maxTradeUsdc: 0n,
  maxDailyTurnoverUsdc: 0n,
  maxExposureUsdc: 0n,
  allowedTokens: [],
  validUntil: 0n,
}
const NO_DEADLINE = 2n ** 64n
/** The pool of COST is so thin that an exit fills in parts. */
const symbols = ['NVDA', 'AAPL', 'MSFT', 'COST'] as const
const owners = accounts.agents.slice(0, 3)
const agentIds: string[] = []
const initialPrices: Record<string, bigint> = {}
const signerOf = (agentId: string) => privateKeyToAccount((owners[agentIds.indexOf(agentId)] as Account).privateKey)
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
/** What the tests covered: the types of trades that were compared, and how many indexed trades reorgs withdrew. */
const covered = { types: new Set<string>(), withdrawn: 0 }
const anvil = (method: string, params: unknown[]) => node.request({ method, params } as never)

beforeAll(async () => {
  for (const [index, owner] of owners.entries()) {
    const { body } = await call('getRegistrationQuote', {
      signer: owner.address,
      vault: index === 0 ? vaults.frontier : vaults.genesis, // the first one trades real capital
      name: 'a',
      metadataURI: 'b',
    })
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = body.typedData.message
    const signature = await sign(privateKeyToAccount(owner.privateKey), body.typedData)
    const args = [vault, name, metadataURI, signer, linkERC8004, BigInt(erc8004AgentId), BigInt(deadline), signature]
    await chain.send(accounts.relayer, { ...registry, functionName: 'selfRegisterAgent', args: args as never })
    agentIds.push(...(await ownedBy(owner.address)))
  }
  for (const token of symbols.map(symbol => tokens[symbol] as `0x${string}`))
    [initialPrices[token]] = await node.readContract({ ...(await oracle()), functionName: 'peekPrice', args: [token] })
  await waiveFirstLoss()
  await anvil('anvil_mine', ['0x40', '0x0']) // no reorg is deep enough to withdraw the registrations
  await indexer().catchUp() // creates the tables
})

afterAll(restoreFirst)

/** Returns the newest block. viem would cache it for seconds. */
const blockNumber = async () => Number(await node.getBlockNumber({ cacheTime: 0 }))

const openIds = async (agentId: string) =>
  (await node.readContract({ ...manager, functionName: 'getOpenPositionIds', args: [BigInt(agentId)] })).map(String)

/** Signs a quote and sends it to the router. A refused quote or a revert has no effect. */
async function trade(agentId: string, quote: OperationId, functionName: string, input: Input) {
  const { status, body } = await ask(quote, { agentId, ...input })
  if (status !== 200) return
  const signature = await sign(signerOf(agentId), body.typedData)
  const rules = (body.body.exits ?? []).map((rule: Body) => ({
    ...{ triggerType: rule.triggerBps < 0 ? 0 : 1, triggerBps: BigInt(rule.triggerBps), exitBps: rule.exitBps },
  }))
  const args = [{ ...body.typedData.message, exits: rules }, signature]
  await chain.send(accounts.executor, { ...(await router()), functionName, args } as never).catch(() => {})
}

async function ownerOf(agentId: string): Promise<Account> {
  const owner = await node.readContract({ ...registry, functionName: 'ownerOf', args: [BigInt(agentId)] })
  return owners.find(({ address }) => address === owner) as Account
}

/** Returns one of the agent's open positions, after opening one if there is none. */
async function pickOpenPosition(random: Random, agentId: string): Promise<string> {
  const ids = await openIds(agentId)
  if (ids.length > 0) return random.pick(ids)
  await actions.open(random, agentId)
  return `${(await openIds(agentId))[0]}`
}

/** Posts a price near the initial one, because the pools do not follow, and fires the exits that it makes due. */
async function movePrice(random: Random, post: (token: Hex, price: bigint) => Promise<unknown>): Promise<void> {
  const token = tokens[random.pick(symbols)] as Hex
  await post(token, ((initialPrices[token] ?? 0n) * BigInt(random.pick([9_955, 9_965, 10_000, 10_030]))) / 10_000n)
  const ids = (await Promise.all(agentIds.map(openIds))).flat().map(BigInt)
  await chain.send(accounts.keeper, { ...(await router()), functionName: 'executeExits', args: [ids] })
}

type Action = (typeof chainActions)[number] | 'reorg' | 'crash' | 'evict' | 'follow' | 'replay'
const chainActions = [
  'open',
  'add',
  'reduce',
  'reduce',
  'ladder',
  'ladder',
  'price',
  'latePrice',
  'transfer',
  'promote',
  'oracle',
  'router',
  'close',
  'close',
  'hours',
  'hours',
  'deposit',
] as const
const actions: Record<Action, (random: Random, agentId: string) => Promise<void>> = {
  async open(random, agentId) {
    const exits = random.pick(['-30:5000,-60:10000', '-40:3000,-50:2500,-90:10000', '120:5000,-35:10000'])
    const input = { symbol: random.pick(symbols), usdcAmount: `${random.integer(5, 60)}`, exits }
    await trade(agentId, 'getTradeIntentQuote', 'openPosition', input)
  },
  async add(random, agentId) {
    const positionId = await pickOpenPosition(random, agentId)
    await trade(agentId, 'getAddIntentQuote', 'addToPosition', { positionId, usdcAmount: '7.25' })
  },
  async reduce(random, agentId) {
    const input = { positionId: await pickOpenPosition(random, agentId), exitBps: random.pick([2500, 6000, 10_000]) }
    await trade(agentId, 'getReduceIntentQuote', 'reducePosition', input)
  },
  async ladder(random, agentId) {
    const input = { positionId: await pickOpenPosition(random, agentId), exits: '-145:4000,-195:10000' }
    await trade(agentId, 'getExitLadderIntentQuote', 'updateExitLadder', input)
  },
  price: random => movePrice(random, postPrice),
  latePrice: random => movePrice(random, (token, price) => postLate(token, price, random.integer(20, 3_000))),
  async hours(random) {
    await chain.increaseTime(random.integer(1, 4) * 3_600)
    await refreshPrices()
  },
  promote: (_, agentId) => promote(agentId),
  oracle: migrateOracle,
  router: migrateRouter,
  async deposit(random) {
    const [usdc, vault] = [contracts.USDC as `0x${string}`, vaults.frontier as `0x${string}`]
    const amount = BigInt(random.integer(1, 9) * 1_000_003)
    const { admin } = accounts
    await chain.send(admin, { address: usdc, abi: usdcTokenAbi, functionName: 'mint', args: [admin.address, amount] })
    await chain.send(admin, { address: usdc, abi: erc20Abi, functionName: 'approve', args: [vault, amount] })
    const args = [amount, admin.address] as const
    await chain.send(admin, { address: vault, abi: mandateVaultAbi, functionName: 'deposit', args })
  },
  async close(random, agentId) {
    await pickOpenPosition(random, agentId)
    const holder = await ownerOf(agentId)
    const nonce = () => node.readContract({ ...ownerControls, functionName: 'nonces', args: [holder.address] })
    const closing = [[BigInt(agentId)], await nonce(), NO_DEADLINE, '0x'] as const
    await chain.send(holder, { ...ownerControls, functionName: 'closeAll', args: closing })
    const ids = (await openIds(agentId)).map(BigInt)
    await chain.send(accounts.keeper, { ...(await router()), functionName: 'executeExits', args: [ids] })
    const trading = [BigInt(agentId), NO_LIMITS, await nonce(), NO_DEADLINE, '0x'] as const
    await chain.send(holder, { ...ownerControls, functionName: 'setMandate', args: trading })
  },
  async transfer(random, agentId) {
    const holder = await ownerOf(agentId)
    const args = [BigInt(agentId), random.pick(owners.filter(other => other !== holder)).address] as const
    await chain.send(holder, { ...registry, functionName: 'transferAgentOwnership', args })
  },
  async reorg(random, agentId) {
    const ancestor = await blockNumber()
    for (let count = random.integer(1, 2); count > 0; count--) await actions[random.pick(chainActions)](random, agentId)
    if (random.chance(0.7)) await indexer().catchUp()
    const indexed = env.HISTORY.prepare('SELECT count(*) AS count FROM trades WHERE block > ?').bind(ancestor)
    covered.withdrawn += (await indexed.first<number>('count')) ?? 0
    await reorgChain(ancestor - random.integer(8, 24))
  },
  async crash(random) {
    const following = indexer()
      .catchUp()
      .catch(() => {})
    await scheduler.wait(random.integer(0, 12))
    await abortAllDurableObjects()
    await following
  },
  async evict() {
    await indexer().status()
    await evictDurableObject(indexer())
  },
  async follow() {
    await indexer().fold()
  },
  async replay() {
    await indexer().replay()
    await catchUp()
  },
}

/** Lets the indexer read the chain up to its present head. */
async function catchUp(): Promise<void> {
  const head = await blockNumber()
  for (let cursor = -1; cursor < head; ) cursor = (await indexer().catchUp()).cursor ?? cursor
}

/** The more often an action is listed, the more likely it is. */
const allActions = [
  ...chainActions,
  ...(['reorg', 'reorg', 'reorg', 'reorg', 'crash', 'crash', 'evict', 'follow', 'replay'] as const),
]

/** Reads all pages of a list. */
async function readPages(id: OperationId, input: Input, list: string): Promise<Body[]> {
  const items: Body[] = []
  for (let cursor: string | undefined; ; ) {
    const { status, body } = await ask(id, { ...input, ...(cursor && { cursor }) })
    expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
    items.push(...body[list])
    cursor = body.nextCursor ?? undefined
    if (cursor === undefined) return items
  }
}

/** Expects every response from the index to equal what the chain has. */
async function expectChainState() {
  for (const agentId of agentIds) {
    const trades = await tradesOf(agentId)
    for (const { type } of trades) covered.types.add(type)
    expect(await readPages('getTradeHistory', { agentId, limit: 7 }, 'trades')).toEqual(trades)
    const type = 'ExitExecuted'
    const exits = trades.filter(trade => trade.type === type)
    expect(await readPages('getTradeHistory', { agentId, type, symbol: 'AAPL' }, 'trades')).toEqual(
      exits.filter(({ symbol }) => symbol === 'AAPL'),
    )
    const closed = await readPages('listClosedPositions', { agentId, limit: 2 }, 'positions')
    expect(
      closed.map(({ derived: { returnBps }, ...position }) => ({
        positionId: position.positionId,
        realizedPnlUsdc: position.realizedPnlUsdc,
        returnBps,
        closedAt: position.closedAt,
        closedBy: position.closedBy,
        proceedsUsdc: position.proceedsUsdc,
        exitPriceUsdc: position.exitPriceUsdc,
      })),
    ).toEqual(await closedOf(agentId))
  }
  for (const agentId of agentIds) await expectEquity(agentId)
  for (const { address } of owners) {
    const { body } = await ask('listAgentsByOwner', { owner: address })
    const ids = [...body.agents, ...body.given].map(({ agentId }: Body) => agentId)
    expect(ids.toSorted((a, b) => Number(a) - Number(b))).toEqual(await ownedBy(address))
  }
  for (const id of ['genesis', 'frontier']) {
    const vault = vaults[id] as `0x${string}`
    const { status, body } = await ask('getVaultStats', { id })
    expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
    expect(body.allocation.used).toBe(`${await allocationUsedIn(vault)}`)
    for (const { timestamp, blockNumber: _, ...worth } of body.sharePrices.slice(-COMPARED_POINTS))
      expect({ timestamp, ...worth }).toEqual({ timestamp, ...(await worthAt(vault, Number(timestamp))) })
  }
}

/** Each costs a search for its block. The points before were compared after earlier steps. */
const COMPARED_POINTS = 6

/** Expects the newest points of an agent's equity to equal what the contracts said at their times. */
async function expectEquity(agentId: string) {
  const { status, body } = await ask('getEquityHistory', { agentId })
  expect({ status, body }).toMatchObject({ status: 200, body: { lagBlocks: 0 } })
  for (const { timestamp, blockNumber: _, priceStale: __, ...figures } of body.points.slice(-COMPARED_POINTS))
    expect({ timestamp, ...figures }).toEqual({ timestamp, ...(await equityAt(agentId, Number(timestamp))) })
}

/** Agents of other test files are on this chain too. */
async function allocationUsedIn(vault: `0x${string}`): Promise<bigint> {
  const next = await node.readContract({ ...registry, functionName: 'nextAgentId' })
  const uses = Array.from({ length: Number(next) - 1 }, async (_, index) => {
    const args = [BigInt(index + 1)] as const // ids start at 1
    const isOfVault = (await node.readContract({ ...registry, functionName: 'vaultOf', args })) === vault
    const isReal =
      (await node.readContract({ ...allocations, functionName: 'capitalModeOf', args })) === CapitalMode.Real
    return isOfVault && isReal ? node.readContract({ ...allocations, functionName: 'allocationUsed', args }) : 0n
  })
  return (await Promise.all(uses)).reduce((sum, used) => sum + used, 0n)
}

/** Each aggregate that triggers keep, and what it is of. */
const AGGREGATES = [
  [
    'SELECT vault, status, agents FROM vault_agents WHERE agents <> 0 ORDER BY vault, status',
    'SELECT vault, status, count(*) AS agents FROM agents WHERE until IS NULL GROUP BY vault, status ORDER BY vault, status',
  ],
  [
    'SELECT owner, agents FROM owner_agents WHERE agents <> 0 ORDER BY owner',
    'SELECT owner, count(*) AS agents FROM agents WHERE until IS NULL AND given = 0 GROUP BY owner ORDER BY owner',
  ],
  [
    'SELECT vault, used AS total FROM vault_use WHERE used <> 0 ORDER BY vault',
    `SELECT vault, sum(CASE WHEN type IN ('PositionOpened', 'PositionIncreased') THEN CAST(usdc_amount AS INTEGER)
      ELSE CAST(realized_pnl_usdc AS INTEGER) - CAST(usdc_amount AS INTEGER) END) AS total
    FROM trades WHERE usdc_amount IS NOT NULL AND capital_mode IS NOT 0 GROUP BY vault HAVING total <> 0 ORDER BY vault`,
  ],
  [
    'SELECT position_id FROM positions WHERE is_closed = 1 ORDER BY position_id',
    'SELECT position_id FROM trades WHERE position_pnl_usdc IS NOT NULL ORDER BY position_id',
  ],
] as const

/** Expects every aggregate to equal the count or sum of all rows. */
async function expectAggregates() {
  for (const queries of AGGREGATES) {
    const [kept, computed] = await env.HISTORY.batch(queries.map(query => env.HISTORY.prepare(query)))
    expect(kept?.results).toEqual(computed?.results)
  }
}

it('a replayed index has the trades of an earlier router and the posts of an earlier oracle, and no other posts', async () => {
  const random = randomOf('migration', 1)
  const act = async (...names: Action[]) => {
    for (const name of names) for (const agentId of agentIds) await actions[name](random, agentId)
  }
  const candles = async () => (await ask('getCandles', { symbol: 'NVDA', interval: '1m', limit: 100 })).body.candles
  const post = (address: Hex, price: bigint) =>
    chain.send(accounts.priceSetter, { address, abi: priceOracleAbi, functionName: 'setPrice', args: [NVDA, price] })
  const NVDA = tokens.NVDA as Hex
  const first = initialPrices[NVDA] ?? 0n
  await act('open', 'add')
  await chain.increaseTime(60)
  await post(inject('successors').PriceOracle, first + 7n) // is not in force yet
  await chain.increaseTime(60)
  await post(contracts.PriceOracle, first + 1n)
  await migrateOracle()
  await migrateRouter()
  await act('add', 'reduce')
  await chain.increaseTime(60)
  await post(contracts.PriceOracle, first + 9n) // is no longer in force
  await post(inject('successors').PriceOracle, first + 2n)
  await expectChainState()
  const before = await candles()
  expect(before.c.slice(-2)).toEqual([first + 1n, first + 2n].map(price => formatUnits(price, 8)))
  await actions.replay(random, '')
  await expectChainState()
  expect(await candles()).toEqual(before)
  await migrateRouter()
  await migrateOracle()
  await act('add')
  await expectChainState()
})

describe.each(SEEDS)('seed %i', seed => {
  it('every response from the index equals what the chain has', async () => {
    const random = randomOf('history', seed)
    const history: string[] = []
    for (let step = 0; step < STEPS; step++) {
      const action = random.pick(allActions)
      history.push(action)
      await actions[action](random, random.pick(agentIds))
      await Promise.all([expectChainState(), expectAggregates()]).catch(error => {
        error.message = `after ${history.join(', ')}: ${error.message}`
        throw error
      })
    }
  })
})

it('a read with an old head does not return rows of a withdrawn block', async () => {
  const { chain: chainConfig, trading } = parseConfig(workerVars(deployment))
  if (chainConfig === undefined) throw new Error('The deployment has no chain.')
  const snapshots = createSnapshotReader(env.HISTORY, createChain(chainConfig, trading), block =>
    indexer().catchUp(block),
  )
  const { cursor: indexedBlock = 0 } = await indexer().catchUp()
  const head = Promise.resolve({ number: BigInt(indexedBlock) - 1n, timestamp: 0n })
  await reorgChain(indexedBlock - 16)
  const { cursor } = await snapshots.readSnapshot(head, () => [])
  const { hash } = await node.getBlock({ blockNumber: BigInt(cursor.block) })
  expect(cursor.hash).toBe(hash)
})

it('covered reorgs of indexed trades, and in full every type of trade', async () => {
  const { results } = await env.HISTORY.prepare('SELECT ancestor FROM reorgs').all()
  expect(results.length).toBeGreaterThan(isLong ? 2 : 0)
  if (!isLong) return
  expect(covered.withdrawn).toBeGreaterThan(2)
  const byOperator = ['PositionForceClosed', 'PositionPartlyForceClosed']
  const inThinPools = ['ExitPartlyExecuted'] // may be among them
  const needed = TRADE_TYPES.filter(type => ![...byOperator, ...inThinPools].includes(type))
  expect([...covered.types]).toEqual(expect.arrayContaining(needed))
})
