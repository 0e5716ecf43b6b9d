import type { Address, Hex } from 'viem'
import type { Chain } from '../../chain/configured-chain.ts'
import { defineTable } from './table.ts'

/** An event of a contract that is neither a trade nor a price. Integers in `args` are digits. */
export type ContractEvent = {
  block: number
  logIndex: number
  contract: Address
  name: string
  agentId: number | null
  args: Record<string, unknown>
  transactionHash: Hex
  timestamp: number
}

export const eventsTable = defineTable<ContractEvent>('events', {
  block: event => event.block,
  log_index: event => event.logIndex,
  contract: event => event.contract,
  name: event => event.name,
  agent_id: event => event.agentId,
  args: ({ args }) => JSON.stringify(args),
  transaction_hash: event => event.transactionHash,
  timestamp: event => event.timestamp,
})

/** A row of `events`. */
export type EventRow = {
  block: number
  log_index: number
  contract: Address
  name: string
  agent_id: number | null
  args: string
  transaction_hash: Hex
  timestamp: number
}

/** Returns the event of a row. */
export const toContractEvent = (row: EventRow): ContractEvent => ({
  block: row.block,
  logIndex: row.log_index,
  contract: row.contract,
  name: row.name,
  agentId: row.agent_id,
  args: JSON.parse(row.args) as ContractEvent['args'],
  transactionHash: row.transaction_hash,
  timestamp: row.timestamp,
})

/** Events that change who controls an agent, or what its owner allows. */
export const OWNER_EVENTS = [
  'MandateUpdated',
  'BuyingStopped',
  'CloseAllStarted',
  'CloseAllEnded',
  'OwnershipOffered',
  'AgentOwnershipTransferred',
  'AgentSignerUpdated',
  'IntentsCancelled',
] as const

/** The event by which a permanent contract names each kind of other one, as `current` or `token`. */
export const NAMING_EVENTS = {
  ownerControls: 'OwnerControlsUpdated',
  orderBooks: 'OrderBookUpdated',
  routers: 'TradeRouterUpdated',
  oracles: 'PriceOracleUpdated',
  tokens: 'TokenRegistered',
} as const
type Replaceable = keyof typeof NAMING_EVENTS

/**
 * Returns a query for the replaceable contracts that permanent ones have named up to the cursor, the present ones last.
 */
export const selectNamed = (db: Pick<D1Database, 'prepare'>, { contracts, trading }: Chain): D1PreparedStatement =>
  db
    .prepare(
      `SELECT *, coalesce(args ->> 'current', args ->> 'token') AS address FROM events INDEXED BY events_contract
      WHERE contract IN (?1, ?2, ?3) AND name IN (${quoted(Object.values(NAMING_EVENTS))}) ORDER BY block, log_index`,
    )
    .bind(contracts.AgentRegistry, contracts.TokenRegistry, trading?.PositionManager ?? '')

/**
 * Returns the contracts of the result of `selectNamed`. Configured ones come first: those of a deployment that does not
 * name its contracts on the chain.
 */
export function toNamed(
  { contracts, trading }: Chain,
  result: D1Result<Record<string, unknown>> | undefined,
): Record<Replaceable, Address[]> {
  const named = (kind: Replaceable) =>
    (result?.results ?? []).filter(({ name }) => name === NAMING_EVENTS[kind]).map(({ address }) => address as Address)
  return {
    ownerControls: named('ownerControls'),
    orderBooks: named('orderBooks'),
    routers: [...(trading ? [trading.TradeRouter] : []), ...named('routers')],
    oracles: [contracts.PriceOracle, ...named('oracles')],
    tokens: named('tokens'),
  }
}

/** Reads the oracle that the token registry named before a block; undefined if it named none. */
export async function readOracleBefore(
  db: D1Database,
  tokenRegistry: Address,
  block: number,
): Promise<Address | undefined> {
  const oracle = await db
    .prepare(
      `SELECT args ->> 'current' AS oracle FROM events INDEXED BY events_contract
      WHERE contract = ?1 AND name = 'PriceOracleUpdated' AND block < ?2 ORDER BY block DESC, log_index DESC LIMIT 1`,
    )
    .bind(tokenRegistry, block)
    .first<Address>('oracle')
  return oracle ?? undefined
}

/** Returns names as a list of SQL. */
export const quoted = (names: readonly string[]): string => names.map(name => `'${name}'`).join()

/** A price that was posted to the oracle, with 8 decimals, and when it was observed. Times are Unix seconds. */
export type PostedPrice = {
  token: Address
  block: number
  logIndex: number
  price: bigint
  observedAt: number
  timestamp: number
}

export const pricesTable = defineTable<PostedPrice>('prices', {
  token: price => price.token,
  block: price => price.block,
  log_index: price => price.logIndex,
  price: ({ price }) => `${price}`,
  observed_at: price => price.observedAt,
  timestamp: price => price.timestamp,
})

/** Returns the price of an oracle event. */
export function toPostedPrice({ block, logIndex, args, timestamp }: ContractEvent): PostedPrice {
  const { asset, price, observedAt } = args as { asset: Address; price: string; observedAt: string }
  return { token: asset, block, logIndex, price: BigInt(price), observedAt: Number(observedAt), timestamp }
}
