import { type Address, numberToHex } from 'viem'
import { expect, vi } from 'vitest'
import { createChain } from '../../src/chain/configured-chain.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createChainFollower } from '../../src/history/chain-follower.ts'
import type { FollowerMemory } from '../../src/history/followed-contracts.ts'
import { openIndexStore } from '../../src/history/store.ts'
import { indexKeyOf, type Reorg } from '../../src/history/tables/cursor.ts'
import { createSqliteD1 } from './sqlite-d1.ts'

const NAMES = ['AgentRegistry', 'VaultTrackRegistry', 'FeeManager', 'TokenRegistry', 'PriceOracle']

/**
 * Starts a follower with an empty index behind a node that responds with what `resultOf` returns: `result` or `error`.
 * The test must restore `fetch` (`vi.unstubAllGlobals`).
 */
export async function followNode(
  resultOf: (method: string, params: unknown[]) => object,
  { startBlock, onReorg = () => {} }: { startBlock?: number; onReorg?: (reorg: Reorg) => void } = {},
) {
  vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
    const calls = JSON.parse(body)
    const answer = ({ id, method, params }: { id: number; method: string; params: unknown[] }) => ({
      jsonrpc: '2.0',
      id,
      ...resultOf(method, params),
    })
    return Response.json(Array.isArray(calls) ? calls.map(answer) : answer(calls))
  })
  const contracts = Object.fromEntries(NAMES.map((name, index) => [name, numberToHex(index + 1, { size: 20 })]))
  const { chain: settings, trading } = parseConfig({
    CHAIN_ID: '31337',
    RPC_URL: 'https://node.example',
    CONTRACTS: JSON.stringify(contracts),
    ...(startBlock !== undefined && { START_BLOCK: `${startBlock}` }),
  })
  if (settings === undefined) expect.unreachable()
  const chain = createChain(settings, trading)
  const store = openIndexStore(createSqliteD1().db, indexKeyOf(chain))
  await store.migrate()
  const none = () => new Set<Address>()
  const named = {
    vaults: none(),
    ownerControls: none(),
    orderBooks: none(),
    routers: none(),
    oracles: none(),
    tokens: none(),
  }
  const memory: FollowerMemory = {
    read: async () => ({ key: indexKeyOf(chain), at: Date.now(), named, rangeBlocks: 2_000 }),
    async write() {},
  }
  return createChainFollower(chain, store, { onAppend() {}, onReorg }, memory)
}
