import {
  abortAllDurableObjects,
  createExecutionContext,
  createScheduledController,
  evictDurableObject,
  runInDurableObject,
  waitOnExecutionContext,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { keccak256, parseEventLogs } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { erc8004IdentityRegistryAbi } from '../../contracts-abi/erc8004-identity-registry.ts'
import { erc8004ReputationRegistryAbi } from '../../contracts-abi/erc8004-reputation-registry.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { Account } from '../../devnet/accounts.ts'
import worker from '../../src/index.ts'
import { chain, FRONTIER, openPosition, registrationOf, sign, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { node } from '../support/history-oracle.ts'
import { call, deployment, request } from '../support/surfaces.ts'

// Weeks pass on the chain; the frontier vault starts agents on real capital, which is what is reported.

const WEEK = 604_800
const { accounts, contracts, tokens } = deployment
const reputation = { address: contracts.ERC8004ReputationRegistry, abi: erc8004ReputationRegistryAbi } as const
const identities = { address: contracts.ERC8004IdentityRegistry, abi: erc8004IdentityRegistryAbi } as const
const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
const NVDA = tokens.NVDA as `0x${string}`
const holder = accounts.agents.at(-1) as Account
const account = privateKeyToAccount(holder.privateKey)
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
let trader: Trader
let identity: bigint
let initialPrice: bigint

beforeAll(async () => {
  await endWeek() // no week ends between the trade and the loss
  const registered = await call('registerAgent', await registrationOf(account, { vault: FRONTIER, name: 'reported' }))
  trader = { agentId: registered.body.agentId, account }
  const receipt = await chain.send(holder, { ...identities, functionName: 'register', args: [] })
  const [minted] = parseEventLogs({ abi: identities.abi, logs: receipt.logs, eventName: 'Registered' })
  identity = minted?.args.agentId as bigint
  ;[initialPrice] = await node.readContract({ ...oracle, functionName: 'peekPrice', args: [NVDA] })
})
afterAll(() => postPrice(10_000n))

async function linkIdentity() {
  const { agentId } = trader
  const { body } = await call('getErc8004LinkQuote', { agentId, erc8004AgentId: `${identity}` })
  const signature = await sign(account, body.typedData)
  expect(await call('linkErc8004', { agentId, ...body.body, signature })).toMatchObject({ status: 201 })
}

const postPrice = (ratio: bigint) =>
  chain.send(accounts.priceSetter, {
    ...oracle,
    functionName: 'setPrice',
    args: [NVDA, (initialPrice * ratio) / 10_000n],
  })

/** Makes every block final, and folds the hours that are over. A new indexer asks for finality at once. */
async function settle() {
  await node.request({ method: 'anvil_mine', params: ['0x50', '0x1'] } as never)
  await indexer().wake() // only an object that runs can be evicted
  await evictDurableObject(indexer())
  await indexer().fold()
}

/** Lets the rest of the week pass, and posts a price in the next one. */
async function endWeek() {
  const { timestamp } = await node.getBlock()
  const monday = (Math.floor((Number(timestamp) - 345_600) / WEEK) + 1) * WEEK + 345_600
  await chain.increaseTime(monday - Number(timestamp) + 3_600)
  await chain.refreshPrices()
  return monday - WEEK
}

async function runCron() {
  const ctx = createExecutionContext()
  const { scheduled }: ExportedHandler<Env> = worker
  await scheduled?.(createScheduledController(), env, ctx)
  await waitOnExecutionContext(ctx)
}

async function feedback() {
  const logs = await node.getLogs({ address: reputation.address, fromBlock: 0n })
  return parseEventLogs({ abi: reputation.abi, logs, eventName: 'NewFeedback' })
    .map(({ args }) => args)
    .filter(({ agentId }) => agentId === identity)
}

const resultOf = async (at: number): Promise<Body> => {
  const { body } = await call('getLeaderboard', { period: 'week', at: `${at}`, capital: 'real', minTrades: 0 })
  return body.entries.find(({ agentId }: Body) => agentId === trader.agentId)
}

describe('weekly feedback', () => {
  let lossWeek: number

  it('weekly feedback is not posted for an agent without an identity, or for a week that has not ended', async () => {
    await openPosition(trader, { symbol: 'NVDA', usdcAmount: '250', exits: '-900:10000' })
    await settle()
    await linkIdentity()
    await settle()
    await runCron()
    expect(await feedback()).toEqual([])
  })

  it('weekly feedback is the return of the week, losses too, with a file whose hash is on chain', async () => {
    await postPrice(9_940n)
    lossWeek = await endWeek()
    await settle()
    await runCron()
    const [given, ...others] = await feedback()
    expect(others).toEqual([])
    const result = await resultOf(lossWeek)
    expect(result.returnPpm).toBeLessThan(0)
    expect(given).toMatchObject({
      clientAddress: accounts.reporter.address,
      value: BigInt(result.returnPpm),
      valueDecimals: 4,
      tag1: 'tradingYield',
      tag2: 'week',
    })
    const response = await request(new URL(given?.feedbackURI ?? '').pathname)
    const bytes = new Uint8Array(await response.arrayBuffer())
    expect(keccak256(bytes)).toBe(given?.feedbackHash)
    expect(JSON.parse(new TextDecoder().decode(bytes))).toMatchObject({
      agentId: Number(identity),
      agentRegistry: `eip155:${deployment.chainId}:${contracts.ERC8004IdentityRegistry}`,
      value: result.returnPpm,
      result: { tradingAgentId: trader.agentId, weekStart: `${lossWeek}`, capital: 'real', pnlUsdc: result.pnlUsdc },
    })
  })

  it('weekly feedback is posted once, whatever breaks', async () => {
    await Promise.all([runCron(), runCron()])
    await abortAllDurableObjects()
    await runCron()
    const lane = env.EXECUTOR_LANE.getByName(accounts.reporter.address)
    await runInDurableObject(lane, (_, state) => state.storage.deleteAll())
    await abortAllDurableObjects()
    await runCron()
    expect(await feedback()).toHaveLength(1)
    const row = env.HISTORY.prepare('SELECT state FROM feedback WHERE agent_id = ?').bind(Number(trader.agentId))
    expect(await row.first('state')).toBe('posted')
  })

  it('weekly feedback makes up for a week in which the service was down', async () => {
    const lostWeek = await endWeek()
    const lastWeek = await endWeek()
    expect(lastWeek - lostWeek).toBe(WEEK)
    await settle()
    await runCron()
    await runCron()
    const given = await feedback()
    expect(given).toHaveLength(3)
    const results = await Promise.all([lossWeek, lostWeek, lastWeek].map(resultOf))
    expect(given.map(({ value }) => Number(value))).toEqual(results.map(({ returnPpm }) => returnPpm))
  })
})

describe('the registration file', () => {
  it('the registration file is a registration-v1 file with the linked identity', async () => {
    const { status, body } = await call('getAgentRegistrationFile', { agentId: trader.agentId })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
        name: 'reported',
        active: true,
        registrations: [
          {
            agentId: Number(identity),
            agentRegistry: `eip155:${deployment.chainId}:${contracts.ERC8004IdentityRegistry}`,
          },
        ],
        supportedTrust: ['reputation'],
      },
    })
    expect((await call('getErc8004Registrations')).body.registrations).toContainEqual(body.registrations[0])
  })

  it('the registration file no longer vouches for an identity that the owner gave away', async () => {
    const args = [account.address, accounts.operator.address, identity] as const
    await chain.send(holder, { ...identities, functionName: 'transferFrom', args })
    const { body } = await call('getAgentRegistrationFile', { agentId: trader.agentId })
    expect(body.registrations).toEqual([])
    const listed = (await call('getErc8004Registrations')).body.registrations
    expect(listed.map(({ agentId }: Body) => agentId)).not.toContain(Number(identity))
  })
})
