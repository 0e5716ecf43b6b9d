import type { Address, Hex } from 'viem'
import type { Chain } from '../../chain/configured-chain.ts'
import { defineTable, type Preparer, type RowOf, readRows, type SqlRow } from './table.ts'

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

const eventColumns = {
  block: ({ block }: ContractEvent) => block,
  log_index: ({ logIndex }: ContractEvent) => logIndex,
  contract: ({ contract }: ContractEvent) => contract,
  name: ({ name }: ContractEvent) => name,
  agent_id: ({ agentId }: ContractEvent) => agentId,
  args: ({ args }: ContractEvent) => JSON.stringify(args),
  transaction_hash: ({ transactionHash }: ContractEvent) => transactionHash,
  timestamp: ({ timestamp }: ContractEvent) => timestamp,
}
export const eventsTable = defineTable('events', eventColumns)

export const toContractEvents = (rows: readonly SqlRow[] = []): ContractEvent[] =>
  (rows as RowOf<typeof eventColumns>[]).map(({ log_index, agent_id, args, transaction_hash, ...event }) => ({
    ...event,
    logIndex: log_index,
    agentId: agent_id,
    args: JSON.parse(args),
    transactionHash: transaction_hash,
  }))

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

/** Returns names as a list of SQL. */
export const quoted = (names: readonly string[]): string => names.map(name => `'${name}'`).join()

const NAMED = `SELECT *, coalesce(args ->> 'current', args ->> 'token') AS address FROM events INDEXED BY events_contract
  WHERE contract IN (?1, ?2, ?3) AND name IN (${quoted(Object.values(NAMING_EVENTS))}) ORDER BY block, log_index`

/**
 * Returns a query for the replaceable contracts that permanent ones have named up to the cursor, the present ones last.
 */
export const selectNamed = (db: Preparer, { contracts, trading }: Chain) =>
  db.prepare(NAMED).bind(contracts.AgentRegistry, contracts.TokenRegistry, trading?.PositionManager ?? '')

/**
 * Returns the contracts of the rows of `selectNamed`. Configured ones come first: those of a deployment that does not
 * name its contracts on the chain.
 */
export function toNamed({ contracts, trading }: Chain, rows: readonly SqlRow[]): Record<Replaceable, Address[]> {
  const named = (kind: Replaceable) =>
    rows.filter(({ name }) => name === NAMING_EVENTS[kind]).map(({ address }) => address as Address)
  return {
    ownerControls: named('ownerControls'),
    orderBooks: named('orderBooks'),
    routers: [...(trading ? [trading.TradeRouter] : []), ...named('routers')],
    oracles: [contracts.PriceOracle, ...named('oracles')],
    tokens: named('tokens'),
  }
}

const ORACLE_BEFORE = `SELECT args ->> 'current' AS oracle FROM events INDEXED BY events_contract
  WHERE contract = ?1 AND name = 'PriceOracleUpdated' AND block < ?2 ORDER BY block DESC, log_index DESC LIMIT 1`

/** Reads the oracle that the token registry named before a block; undefined if it named none. */
export async function readOracleBefore(
  db: D1Database,
  tokenRegistry: Address,
  block: number,
): Promise<Address | undefined> {
  const [found] = await readRows<{ oracle: Address }>(db, ORACLE_BEFORE, tokenRegistry, block)
  return found?.oracle
}

/** A price that was posted to the oracle, with 8 decimals, and when it was observed. Times are Unix seconds. */
export type PostedPrice = {
  token: Address
  block: number
  logIndex: number
  price: bigint
  observedAt: number
  timestamp: number
}

const priceColumns = {
  token: ({ token }: PostedPrice) => token,
  block: ({ block }: PostedPrice) => block,
  log_index: ({ logIndex }: PostedPrice) => logIndex,
  price: ({ price }: PostedPrice) => `${price}`,
  observed_at: ({ observedAt }: PostedPrice) => observedAt,
  timestamp: ({ timestamp }: PostedPrice) => timestamp,
}
export const pricesTable = defineTable('prices', priceColumns)

export const toPostedPrices = (rows: readonly SqlRow[] = []): PostedPrice[] =>
  (rows as RowOf<typeof priceColumns>[]).map(({ log_index, price, observed_at, ...posted }) => ({
    ...posted,
    logIndex: log_index,
    price: BigInt(price),
    observedAt: observed_at,
  }))

export function toPostedPrice({ block, logIndex, args, timestamp }: ContractEvent): PostedPrice {
  const { asset, price, observedAt } = args as { asset: Address; price: string; observedAt: string }
  return { token: asset, block, logIndex, price: BigInt(price), observedAt: Number(observedAt), timestamp }
}
