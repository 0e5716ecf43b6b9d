import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { numberToHex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import type { NodeLog } from '../../src/rpc/requests.ts'
import { logLag } from '../../src/scheduled/scheduled.ts'
import { newTrader, openPosition, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { node } from '../support/history-oracle.ts'
import { appWith, call, deployment } from '../support/surfaces.ts'

// The index in the database. trades.test.ts and history-property.test.ts test what the API returns from it.

const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const select = async (sql: string, ...values: unknown[]): Promise<Body[]> =>
  (
    await env.HISTORY.prepare(sql)
      .bind(...values)
      .all()
  ).results

let trader: Trader
let positionId: string

beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { symbol: 'NVDA', usdcAmount: '100' })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
  await indexer().catchUp() // an index that starts creates its tables
})

describe('logs of receipts that lanes forward', () => {
  /** The logs of a trade's receipt, most of which belong to no trade. */
  let logs: NodeLog[]

  beforeAll(async () => {
    const { body } = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '20' })
    const receipt = await node.request<{ ReturnType: { logs: NodeLog[] } }>({
      method: 'eth_getTransactionReceipt',
      params: [body.transactionHash],
    })
    logs = receipt.logs
    await env.HISTORY.batch([
      env.HISTORY.prepare('CREATE TABLE relayed_writes (block INTEGER NOT NULL)'),
      env.HISTORY.prepare(
        `CREATE TRIGGER relayed_write AFTER INSERT ON relayed
        BEGIN INSERT INTO relayed_writes VALUES (new.block); END`,
      ),
    ])
  })
  afterEach(() => vi.restoreAllMocks())
  afterAll(async () => {
    await env.HISTORY.batch(
      ['DROP TRIGGER relayed_write', 'DROP TABLE relayed_writes'].map(sql => env.HISTORY.prepare(sql)),
    )
  })

  /** Returns the blocks of all rows that were written, deleted ones too. */
  const writtenBlocks = async () =>
    (await select('SELECT block FROM relayed_writes ORDER BY block')).map(({ block }) => block)

  /** Returns the logs as if from another transaction, in a block that the chain may not have yet. */
  const logsAt = (block: number, transaction = block): NodeLog[] =>
    logs.map((log, index) => ({
      ...log,
      blockNumber: numberToHex(block),
      blockHash: numberToHex(transaction, { size: 32 }),
      transactionHash: numberToHex(transaction, { size: 32 }),
      logIndex: numberToHex(transaction * logs.length + index),
    }))
  const forwardAt = (block: number) => indexer().addRelayed(logsAt(block))

  /** Makes the indexer fail to read the chain. */
  async function failStep() {
    const send = globalThis.fetch.bind(globalThis)
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      if (new Request(input as RequestInfo).url.startsWith(deployment.rpcUrl)) throw new TypeError('the node is down')
      return send(input, init)
    })
    await expect(runInDurableObject(indexer(), object => object.catchUp())).rejects.toThrow()
  }

  /** Mines blocks and indexes them. */
  async function passBlocks(count: number) {
    await node.request<Body>({ method: 'anvil_mine', params: [numberToHex(count), '0x0'] })
    await vi.waitFor(async () => void (await indexer().catchUp()), { timeout: 30_000 })
  }

  /** Returns the cursor of an index that has reached the head. */
  async function indexedBlock(): Promise<number> {
    return vi.waitFor(
      async () => {
        const { cursor = -1, head } = await indexer().catchUp()
        expect(cursor).toBe(head) // unless a block came in between
        return cursor
      },
      { timeout: 30_000 },
    )
  }

  it('logs of receipts that lanes forward are not written while the index keeps up', async () => {
    const block = await indexedBlock()
    for (const next of [block + 1, block + 2]) await forwardAt(next)
    await passBlocks(3)
    expect(await indexedBlock()).toBeGreaterThan(block + 2)
    expect(await writtenBlocks()).toEqual([])
  })

  it('logs of receipts that lanes forward are written as trades once a step fails, until the index keeps up again', async () => {
    const block = await indexedBlock()
    await forwardAt(block + 1)
    await failStep()
    await vi.waitFor(async () => expect(await writtenBlocks()).toEqual([block + 1]), { timeout: 30_000 })
    await forwardAt(block + 2)
    expect(await writtenBlocks()).toEqual([block + 1, block + 2])
    vi.restoreAllMocks()
    await passBlocks(3)
    expect(await select('SELECT block FROM relayed')).toEqual([])
    await forwardAt((await indexedBlock()) + 1)
    await passBlocks(2)
    expect(await writtenBlocks()).toEqual([block + 1, block + 2])
  })

  it('logs of receipts that lanes forward are written with the hash of their own block, also if a reorg has replaced it', async () => {
    const block = (await indexedBlock()) + 1
    await failStep()
    await indexer().addRelayed([...logsAt(block, 1), ...logsAt(block, 2)])
    const written = await select(
      "SELECT block_hash AS hash, trade ->> 'transaction_hash' AS transactionHash FROM relayed WHERE block = ?",
      block,
    )
    expect(written).toHaveLength(2)
    for (const { hash, transactionHash } of written) expect(hash).toBe(transactionHash)
    vi.restoreAllMocks()
    await passBlocks(2)
  })
})

it('a log line tells of an index that is far behind, and of a chain that is', async () => {
  const context = createContext(parseConfig(workerVars(deployment)), env)
  const lines: string[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation(line => void lines.push(String(line)))
  const events = () => lines.map(line => (JSON.parse(line) as { event: string }).event)
  await vi.waitFor(
    async () => {
      // The indexer moves the cursor back within a second.
      await env.HISTORY.prepare('UPDATE cursor SET timestamp = timestamp - 1000').run()
      await logLag(context)
      expect(events()).toContain('index lag')
    },
    { timeout: 30_000 },
  )
  await logLag(context, Date.now() + 365 * 86_400_000)
  spy.mockRestore()
  expect(events()).toContain('chain lag')
  await vi.waitFor(async () => void (await indexer().catchUp()), { timeout: 30_000 })
})

it('readiness reports how far the index is behind', async () => {
  const { cursor } = await indexer().catchUp()
  const { status, body } = await call('getReadiness')
  const { history } = body.details ?? body
  expect({ status, history }).toMatchObject({ status: 200, history: { headBlock: body.rpc.blockNumber } })
  expect(Number(history.cursor)).toBeGreaterThanOrEqual(cursor ?? 0)
  expect(history.lagBlocks).toBe(Math.max(0, Number(history.headBlock) - Number(history.cursor)))
})

describe('without an index of the same contracts', () => {
  const { contracts, accounts } = deployment
  const elsewhere = appWith({
    CONTRACTS: JSON.stringify({ ...contracts, TradeRouter: accounts.relayer.address }),
  })

  it('without an index of the same contracts reads of the history are refused', async () => {
    const responses = [
      await call('getTradeHistory', { agentId: trader.agentId }, elsewhere),
      await call('listAgentsByOwner', { owner: trader.account.address }, elsewhere),
      await call('listClosedPositions', { agentId: trader.agentId, cursor: 'p9' }, elsewhere),
    ]
    for (const response of responses)
      expect(response).toMatchObject({ status: 503, body: { code: 'HISTORY_UNAVAILABLE', retryable: true } })
  })

  it('without an index of the same contracts closed positions are found among the newest positions of all agents', async () => {
    const { body } = await call('listClosedPositions', { agentId: trader.agentId }, elsewhere)
    expect(body).toMatchObject({ positions: [{ positionId }], nextCursor: `p${positionId}`, window: 500, lagBlocks: 0 })
  })
})
