import { type Address, zeroAddress } from 'viem'
import type { Chain } from '../chain/configured-chain.ts'
import { agentRegistry } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { listedVaults, vaultListCalls } from '../chain/read-vaults-and-tokens.ts'
import { batchesOf } from '../concurrency.ts'
import type { LogFilter, NodeLog } from '../rpc/requests.ts'
import {
  addNamedContract,
  FOLLOWED_TOPICS,
  followedAddresses,
  MULTIPLIER_TOPICS,
  type NamedContracts,
} from './followed-events.ts'
import type { RangeReader } from './range-reader.ts'
import type { IndexStore } from './store.ts'
import { indexKeyOf } from './tables/cursor.ts'

/**
 * What the follower keeps while its object is evicted, so that the first step after that asks no more of a node than
 * others.
 */
export type FollowerMemory = {
  read(): Promise<Remembered | undefined>
  write(remembered: Remembered): Promise<void>
}
/**
 * What was read at a time (epoch milliseconds) for the contracts of `key`. `rangeBlocks` is the range of logs that the
 * node accepts.
 */
type Remembered = { key: string; at: number; named: NamedContracts; rangeBlocks: number }

const MAX_MEMORY_AGE_MS = 3_600_000

/** Creates the list of the contracts whose logs are followed: the permanent ones, and those that they name. */
export function createFollowedContracts(
  chain: Chain,
  store: IndexStore,
  ranges: RangeReader,
  memory: FollowerMemory | undefined,
) {
  let named: NamedContracts | undefined
  let namedAt = 0

  /** Returns the named contracts. Throws CHAIN_UNREACHABLE. */
  async function open(): Promise<NamedContracts> {
    if (named !== undefined) return named
    const remembered = await memory?.read()
    if (remembered?.key === indexKeyOf(chain) && Date.now() - remembered.at < MAX_MEMORY_AGE_MS) {
      namedAt = remembered.at
      ranges.restore(remembered.rangeBlocks)
      named = remembered.named
      for (const vault of Object.values(chain.vaults)) named.vaults.add(vault)
      if (chain.trading) named.routers.add(chain.trading.TradeRouter)
      named.oracles.add(chain.contracts.PriceOracle)
      named.tokens = new Set([...(named.tokens ?? []), ...Object.values(chain.tokens)])
      return named
    }
    const read = await readNamedContracts(chain, store)
    namedAt = Date.now()
    named = read
    await remember()
    return read
  }

  async function remember(): Promise<void> {
    if (named) await memory?.write({ key: indexKeyOf(chain), at: namedAt, named, rangeBlocks: ranges.blocks() })
  }

  /**
   * Adds the contracts that logs name. Returns whether there were new ones, whose logs must be read too; they are
   * remembered before the cursor passes the log that names them.
   */
  async function addNamed(logs: readonly NodeLog[]): Promise<boolean> {
    const known = await open()
    const added = logs.filter(log => addNamedContract(chain, known, log))
    if (added.length > 0) await remember()
    return added.length > 0
  }

  /** Returns the filters of their logs. Tokens have one of their own: their transfers are never followed. */
  async function filters(): Promise<LogFilter[]> {
    const known = await open()
    return [
      ...batchesOf(FOLLOWED_TOPICS, ranges.maxTopics()).map(topics => ({
        address: followedAddresses(chain, known),
        topics: [topics],
      })),
      ...(known.tokens.size > 0 ? [{ address: [...known.tokens], topics: [MULTIPLIER_TOPICS] }] : []),
    ]
  }

  return {
    open,
    remember,
    addNamed,
    filters,
    forget(): void {
      named = undefined
    },
  }
}

/**
 * Reads the contracts that permanent ones name: those of the index, and from the chain the present ones that may have
 * been named before the index begins. Owner controls and an order book exist only in some deployments. Throws
 * CHAIN_UNREACHABLE.
 */
async function readNamedContracts(chain: Chain, { readNamed }: Pick<IndexStore, 'readNamed'>): Promise<NamedContracts> {
  const [{ values }, indexed] = await Promise.all([
    readTree(chain, {
      vaults: vaultListCalls(chain),
      ownerControls: optional(call(agentRegistry(chain), 'ownerControls', [])),
      orderBook: optional(call(agentRegistry(chain), 'orderBook', [])),
    }),
    readNamed(chain),
  ])
  const existing = (address: Address | undefined) => (address && address !== zeroAddress ? [address] : [])
  return {
    vaults: new Set([...Object.values(chain.vaults), ...(await listedVaults(chain, values.vaults))]),
    ownerControls: new Set([...indexed.ownerControls, ...existing(values.ownerControls)]),
    orderBooks: new Set([...indexed.orderBooks, ...existing(values.orderBook)]),
    routers: new Set(indexed.routers),
    oracles: new Set(indexed.oracles),
    tokens: new Set([...Object.values(chain.tokens), ...indexed.tokens]),
  }
}
