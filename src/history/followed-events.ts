import { decodeEvent, eventTopic } from '@agent-trading-service/protocol/decode-event'
import { POST_NAMES, selectPosts, usdcValue } from '@agent-trading-service/protocol/oracle-price'
import {
  pairTradeEvents,
  TRADE_TOPICS,
  type Trade,
  type TradeEvent,
} from '@agent-trading-service/protocol/trade-events'
import { VAULT_WORTH_EVENTS } from '@agent-trading-service/protocol/vault-book'
import { type Abi, type AbiEvent, type Address, getAddress, type Hex, parseAbi, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { getAgents } from '../chain/agents.ts'
import { completeTrades, type TradedPosition } from '../chain/complete-trades.ts'
import type { Chain, TradingChain } from '../chain/configured-chain.ts'
import type { ChainChanges, PositionChanges } from '../keeper/book.ts'
import { unreachable } from '../rpc/node-errors.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { RowPlace } from './audit-index.ts'
import type { IndexRows, IndexStore } from './store.ts'
import { type AgentNameWord, wordsOfName } from './tables/agent-names.ts'
import { toAgentVersions } from './tables/agents.ts'
import { type ContractEvent, NAMING_EVENTS, toPostedPrice } from './tables/events.ts'
import { placedOrderOf } from './tables/orders.ts'
import { openedPositions } from './tables/positions.ts'

const selectEvents = (abi: Abi, names: readonly string[]): readonly AbiEvent[] =>
  abi.filter(item => item.type === 'event').filter(({ name }) => names.includes(name))

/** No row has it, because the chain has the peak; only the keeper learns of it. */
const PEAK_RAISED = 'OrderPeakRaised'

/** `UIMultiplierUpdated` as deployed, and as an earlier draft of ERC-8056 has it; later drafts can cancel. */
const multiplierEvents: readonly AbiEvent[] = parseAbi([
  'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp)',
  'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 setAtTimestamp, uint256 effectiveAtTimestamp)',
  'event UIMultiplierUpdateCancelled(uint256 cancelledMultiplier, uint256 cancelledEffectiveAt)',
])

/** The events that the indexer follows in addition to trades, by contract. Other events never reach the index. */
const followedEvents = {
  registry: selectEvents(agentRegistryAbi, [
    'AgentRegistered',
    'AgentMetadataUpdated',
    'AgentStatusChanged',
    'AgentSignerUpdated',
    'AgentPromoted',
    'AgentOwnershipTransferred',
    'PayoutRecipientUpdated',
    'ERC8004IdentityLinked',
    'ERC8004IdentityUnlinked',
    'OwnerControlsUpdated',
    'OrderBookUpdated',
    'OrdersVoided',
    'Paused',
    'Unpaused',
  ]),
  ownerControls: selectEvents(ownerControlsAbi, [
    'MandateUpdated',
    'BuyingStopped',
    'CloseAllStarted',
    'CloseAllEnded',
    'OwnershipOffered',
    'IntentsCancelled',
  ]),
  orderBook: selectEvents(orderBookAbi, ['OrderPlaced', 'OrderExecuted', 'OrderEnded', PEAK_RAISED]),
  allocations: selectEvents(allocationManagerAbi, [
    'AllocationCreated',
    'AllocationCapUpdated',
    'AllocationStatusUpdated',
  ]),
  vaultRegistry: selectEvents(vaultTrackRegistryAbi, [
    'VaultRegistered',
    'VaultTrackConfigUpdated',
    'TrackTypeUpdated',
  ]),
  vault: selectEvents(mandateVaultAbi, [
    ...VAULT_WORTH_EVENTS,
    'MaxPriceAgeUpdated',
    'TradingPausedUpdated',
    'LiquidityPausedUpdated',
    'TokenEnabledUpdated',
  ]),
  oracle: selectEvents(priceOracleAbi, [...POST_NAMES, 'AssetConfigUpdated']),
  tokenRegistry: selectEvents(tokenRegistryAbi, ['PriceOracleUpdated', 'TokenRegistered']),
  token: multiplierEvents,
  positionManager: selectEvents(positionManagerAbi, ['TradeRouterUpdated']),
  timelock: selectEvents(timelockAbi, ['CallScheduled', 'CallExecuted', 'Cancelled']),
} as const
type FollowedContract = keyof typeof followedEvents

/** The first topics of all followed events and of the events that make up trades. */
export const FOLLOWED_TOPICS: readonly Hex[] = [
  ...new Set([
    ...TRADE_TOPICS,
    ...Object.entries(followedEvents).flatMap(([contract, abi]) =>
      contract === 'token' ? [] : abi.map(item => toEventSelector(item)),
    ),
  ]),
]

/** The first topics of the events of tokens that are followed. */
export const MULTIPLIER_TOPICS: readonly Hex[] = multiplierEvents.map(item => toEventSelector(item))

/**
 * Contracts that permanent ones name, the current and earlier ones. They are followed even though they are not
 * configured.
 */
export type NamedContracts = {
  vaults: Set<Address>
  /** The contracts that owners sign messages for. */
  ownerControls: Set<Address>
  orderBooks: Set<Address>
  routers: Set<Address>
  oracles: Set<Address>
  /** The listed tokens. Only their multipliers are followed. */
  tokens: Set<Address>
}

/** Returns the contracts with followed events: the deployment's and the named ones. */
export function followedAddresses(
  { contracts, trading }: Chain,
  { vaults, ownerControls, orderBooks, routers, oracles }: NamedContracts,
): Address[] {
  const addresses = [
    contracts.AgentRegistry,
    contracts.VaultTrackRegistry,
    contracts.TokenRegistry,
    ...oracles,
    ...vaults,
    ...ownerControls,
    ...orderBooks,
  ]
  if (contracts.Timelock) addresses.push(contracts.Timelock)
  if (trading) addresses.push(...routers, trading.PositionManager, trading.AllocationManager)
  return addresses
}

/** The events that name a contract, with the topic that has its address. */
const namings = [
  { event: eventTopic(vaultTrackRegistryAbi, 'VaultRegistered'), by: 'vaultRegistry', topic: 1, as: 'vaults' },
  { event: eventTopic(agentRegistryAbi, NAMING_EVENTS.ownerControls), by: 'registry', topic: 2, as: 'ownerControls' },
  { event: eventTopic(agentRegistryAbi, NAMING_EVENTS.orderBooks), by: 'registry', topic: 2, as: 'orderBooks' },
  { event: eventTopic(positionManagerAbi, NAMING_EVENTS.routers), by: 'positionManager', topic: 2, as: 'routers' },
  { event: eventTopic(tokenRegistryAbi, NAMING_EVENTS.oracles), by: 'tokenRegistry', topic: 2, as: 'oracles' },
  { event: eventTopic(tokenRegistryAbi, NAMING_EVENTS.tokens), by: 'tokenRegistry', topic: 1, as: 'tokens' },
] as const

/** Adds the contract that a log names, if it does. Returns whether it is new. */
export function addNamedContract(chain: Chain, named: NamedContracts, { address, topics }: NodeLog): boolean {
  const naming = namings.find(({ event }) => event === topics[0])
  if (naming === undefined || contractAt(chain, named, getAddress(address)) !== naming.by) return false
  const addresses = named[naming.as]
  const before = addresses.size
  addresses.add(getAddress(`0x${topics[naming.topic]?.slice(-40)}`))
  return addresses.size > before
}

/** Returns the event of a log; undefined for logs of trades and of events that are not followed. */
function decodeFollowedEvent(
  chain: Chain,
  named: NamedContracts,
  log: NodeLog,
  timestamp: number,
): ContractEvent | undefined {
  const address = getAddress(log.address)
  const contract = contractAt(chain, named, address)
  const decoded = contract && tryDecode(followedEvents[contract], log)
  if (decoded === undefined) return undefined
  const { name, args } = decoded
  return {
    block: Number(log.blockNumber),
    logIndex: Number(log.logIndex),
    contract: address,
    name,
    agentId: typeof args.agentId === 'string' ? Number(args.agentId) : null,
    args,
    transactionHash: log.transactionHash,
    timestamp,
  }
}

function contractAt(
  { contracts, trading }: Chain,
  { ownerControls, orderBooks, routers, oracles, tokens }: NamedContracts,
  address: Address,
): FollowedContract | undefined {
  if (ownerControls.has(address)) return 'ownerControls'
  if (orderBooks.has(address)) return 'orderBook'
  if (oracles.has(address)) return 'oracle'
  if (tokens.has(address)) return 'token'
  if (routers.has(address)) return undefined
  switch (address.toLowerCase()) {
    case contracts.AgentRegistry.toLowerCase():
      return 'registry'
    case trading?.AllocationManager.toLowerCase():
      return 'allocations'
    case contracts.VaultTrackRegistry.toLowerCase():
      return 'vaultRegistry'
    case contracts.TokenRegistry.toLowerCase():
      return 'tokenRegistry'
    case contracts.Timelock?.toLowerCase():
      return 'timelock'
    case trading?.PositionManager.toLowerCase():
      return 'positionManager'
    default:
      return 'vault'
  }
}

function tryDecode(abi: Abi, log: NodeLog): { name: string; args: Record<string, unknown> } | undefined {
  try {
    const { eventName, args } = decodeEvent(abi, log)
    return { name: eventName ?? '', args: integersToDigits(args ?? {}) as Record<string, unknown> }
  } catch {
    return undefined // an event of another contract with the same first topic
  }
}

function integersToDigits(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`
  if (Array.isArray(value)) return value.map(integersToDigits)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, integersToDigits(item)]))
  return value
}

/** Reads what the index has that new events refer to. */
type IndexedState = Pick<IndexStore, 'readPositions' | 'readAgents' | 'readOracleBefore' | 'readPricesBefore'>

/** Returns the Unix seconds of a log's block. */
type TimeOf = (log: NodeLog) => number

/** Converts the logs of a range of blocks to rows. Throws CHAIN_UNREACHABLE. */
export async function toIndexRows(
  chain: Chain,
  named: NamedContracts,
  logs: readonly NodeLog[],
  timeOf: TimeOf,
  state: IndexedState,
): Promise<IndexRows> {
  const { AgentRegistry } = chain.contracts
  const decoded = decodeLogs(chain, named, logs, timeOf)
  const completed = await toTrades(chain, decoded.trades, timeOf, state.readPositions)
  const isOf = (address: string) => (event: ContractEvent) => event.contract === address
  const prices = (await selectIndexedPosts(chain, named, decoded.events, state)).map(toPostedPrice)
  const trades = await valueTrades(chain, completed, prices, state.readPricesBefore)
  const events = decoded.events.filter(event => !isPost(event) && !isPlacement(event) && event.name !== PEAK_RAISED)
  return {
    trades,
    positions: openedPositions(trades),
    agents: await toAgentVersions(
      events.filter(event => isOf(AgentRegistry)(event) || named.ownerControls.has(event.contract)),
      state.readAgents,
    ),
    names: await toAgentNames(chain, events.filter(isOf(AgentRegistry))),
    prices,
    orders: decoded.events.filter(isPlacement).map(placedOrderOf),
    events,
    changes: changesOf(decoded),
    blocks: blocksOf(logs),
  }
}

const isPost = ({ name }: ContractEvent) => POST_NAMES.includes(name)
const isPlacement = ({ name }: ContractEvent) => name === 'OrderPlaced'

/** What logs say by themselves, oldest first. */
type DecodedLogs = { trades: TradeEvent<FollowedLog>[]; events: ContractEvent[] }
type FollowedLog = ReturnType<typeof toTradeLog>

function decodeLogs(chain: Chain, named: NamedContracts, logs: readonly NodeLog[], timeOf: TimeOf): DecodedLogs {
  const { trading } = chain
  const sources = trading ? [...named.routers, trading.PositionManager, ...named.orderBooks] : []
  const addresses = sources.map(address => address.toLowerCase())
  return {
    trades: pairTradeEvents(logs.filter(({ address }) => addresses.includes(address.toLowerCase())).map(toTradeLog)),
    events: logs.flatMap(log => decodeFollowedEvent(chain, named, log, timeOf(log)) ?? []),
  }
}

/** Returns what the logs of a transaction change, before the index has them. */
export const changesOfLogs = (chain: Chain, named: NamedContracts, logs: readonly NodeLog[]): ChainChanges =>
  changesOf(decodeLogs(chain, named, logs, () => 0))

export const tradePlacesIn = (chain: Chain, named: NamedContracts, logs: readonly NodeLog[]): RowPlace[] =>
  decodeLogs(chain, named, logs, () => 0).trades.map(({ log: { blockNumber, logIndex } }) => ({
    block: Number(blockNumber),
    logIndex: Number(logIndex),
  }))

/** Events after which all positions of an agent are sold, or no longer, or its orders are void. */
const AGENT_EVENTS = ['CloseAllStarted', 'CloseAllEnded', 'OrdersVoided']
const ORDER_EVENTS = ['OrderExecuted', 'OrderEnded', PEAK_RAISED]

/** Returns the positions and orders that logs change, by block, and the orders that they place. */
function changesOf({ trades, events }: DecodedLogs): ChainChanges {
  const none = { positionIds: [], agentIds: [], orderIds: [] }
  const changes: Required<PositionChanges>[] = [
    ...trades.map(({ log, positionId }) => ({ ...none, block: log.blockNumber, positionIds: [positionId] })),
    ...events.flatMap(({ name, block, agentId, args }): Required<PositionChanges>[] => {
      if (ORDER_EVENTS.includes(name)) return [{ ...none, block: BigInt(block), orderIds: [args.orderId as Hex] }]
      const isOfAgent = AGENT_EVENTS.includes(name) && agentId !== null
      return isOfAgent ? [{ ...none, block: BigInt(block), agentIds: [BigInt(agentId)] }] : []
    }),
  ]
  return {
    positions: [...Map.groupBy(changes, ({ block }) => block)].map(([block, ofBlock]) => ({
      block,
      positionIds: [...new Set(ofBlock.flatMap(({ positionIds }) => positionIds))],
      agentIds: [...new Set(ofBlock.flatMap(({ agentIds }) => agentIds))],
      orderIds: [...new Set(ofBlock.flatMap(({ orderIds }) => orderIds))],
    })),
    orders: events
      .filter(isPlacement)
      .map(placedOrderOf)
      .filter(({ order }) => order.validUntil > Date.now() / 1_000), // a backfill has old ones
    isUrgent: events.some(event => isPost(event) || event.name === 'CloseAllStarted'),
  }
}

/** Returns the posts of the oracles in force. Only a second oracle makes it ask which one that is. */
async function selectIndexedPosts(
  { contracts }: Chain,
  { oracles }: NamedContracts,
  events: readonly ContractEvent[],
  { readOracleBefore }: IndexedState,
): Promise<ContractEvent[]> {
  const [first] = events
  if (first === undefined || !events.some(isPost)) return []
  const oracle = oracles.size > 1 ? await readOracleBefore(contracts.TokenRegistry, first.block) : undefined
  return selectPosts(events, oracle ?? contracts.PriceOracle)
}

/** Returns the words of the names of the agents that the registry's events register. The events lack the names. */
async function toAgentNames(chain: Chain, registryEvents: readonly ContractEvent[]): Promise<AgentNameWord[]> {
  const blocks = new Map(
    registryEvents.flatMap(({ name, agentId, block }) =>
      name === 'AgentRegistered' && agentId !== null ? [[agentId, block] as const] : [],
    ),
  )
  if (blocks.size === 0) return []
  const { agents } = await getAgents(chain, [...blocks.keys()].map(BigInt))
  if (agents.length < blocks.size) throw unreachable('the node has the registration of an agent, but not the agent')
  return agents.flatMap(({ agentId, agent }) => {
    const block = blocks.get(Number(agentId)) ?? 0
    return wordsOfName(agent.name).map(word => ({ agentId: Number(agentId), block, word }))
  })
}

/** Adds to trades, oldest first, what their tokens were worth at the oracle's last price at the end of their block. */
async function valueTrades(
  chain: Chain,
  trades: readonly Trade[],
  prices: IndexRows['prices'],
  readPricesBefore: IndexedState['readPricesBefore'],
): Promise<Trade[]> {
  const executions = trades.filter(({ tokenAmount }) => tokenAmount !== undefined)
  const [first] = executions
  if (first === undefined) return [...trades]
  const tokens = [...new Set(executions.map(({ token }) => token))]
  const before = await readPricesBefore(tokens, Number(first.blockNumber))
  const decimalsOf = chain.memory.decimals // from the completion of the trades
  return trades.map(trade => {
    const { token, tokenAmount, blockNumber } = trade
    const posted = prices.findLast(price => price.token === token && price.block <= Number(blockNumber))
    const price = posted?.price ?? before.get(token)
    const decimals = decimalsOf.get(token)
    if (tokenAmount === undefined || price === undefined || decimals === undefined) return trade
    return { ...trade, oracleValueUsdc: usdcValue(tokenAmount, { price, decimals }) }
  })
}

/** Completes the trades of whole transactions, oldest first. Throws CHAIN_UNREACHABLE. */
async function toTrades(
  chain: Chain,
  events: readonly TradeEvent<FollowedLog>[],
  timeOf: TimeOf,
  readPositions: IndexedState['readPositions'],
): Promise<Trade[]> {
  if (events.length === 0) return []
  const opened = new Set(events.flatMap(({ type, positionId }) => (type === 'PositionOpened' ? [positionId] : [])))
  const older = [...new Set(events.map(({ positionId }) => positionId))].filter(id => !opened.has(id))
  const positions = older.length > 0 ? await readPositions(older) : new Map<bigint, TradedPosition>()
  return completeTrades(chain as TradingChain, events, positions, ({ nodeLog }) => BigInt(timeOf(nodeLog)))
}

const toTradeLog = (nodeLog: NodeLog) => ({
  topics: nodeLog.topics,
  data: nodeLog.data,
  transactionHash: nodeLog.transactionHash,
  blockNumber: BigInt(nodeLog.blockNumber),
  logIndex: Number(nodeLog.logIndex),
  nodeLog,
})

function blocksOf(logs: readonly NodeLog[]): IndexRows['blocks'] {
  const hashes = new Map(logs.map(({ blockNumber, blockHash }) => [Number(blockNumber), blockHash]))
  return [...hashes].map(([number, hash]) => ({ number, hash }))
}
