import { type Abi, type Address, getAddress, type Hex, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { Chain, TradingChain } from '../chain/chain.ts'
import { completeTrades, type TradedPosition } from '../chain/trade-details.ts'
import { decodeEvent } from '../protocol/decode-event.ts'
import { pairTradeEvents, TRADE_TOPICS, type Trade } from '../protocol/trade-events.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { AgentRow, EventRow, PriceRow, Rows } from './store.ts'

// What is followed beside trades, by the contract that says it.
const registryEvents = [
  ...['AgentRegistered', 'AgentMetadataUpdated', 'AgentStatusChanged', 'AgentSignerUpdated', 'AgentPromoted'],
  ...['AgentOwnershipTransferred', 'PayoutRecipientUpdated', 'ERC8004IdentityLinked', 'ERC8004IdentityUnlinked'],
  ...['Paused', 'Unpaused'],
]
const allocationEvents = ['AllocationCreated', 'AllocationCapUpdated', 'AllocationStatusUpdated']
const vaultRegistryEvents = ['VaultRegistered', 'VaultTrackConfigUpdated', 'TrackTypeUpdated']
const vaultEvents = [
  ...['Deposit', 'Withdraw', 'Transfer', 'TradingPausedUpdated', 'LiquidityPausedUpdated', 'TokenEnabledUpdated'],
]
const priceEvents = ['PriceUpdated', 'PriceForced']

const abiOf = (abi: Abi, names: readonly string[]): Abi =>
  abi.filter(item => item.type === 'event' && names.includes(item.name))
const sources = {
  registry: abiOf(agentRegistryAbi, registryEvents),
  allocations: abiOf(allocationManagerAbi, allocationEvents),
  vaultRegistry: abiOf(vaultTrackRegistryAbi, vaultRegistryEvents),
  vault: abiOf(mandateVaultAbi, vaultEvents),
  oracle: abiOf(priceOracleAbi, priceEvents),
} as const
const topicsOf = (abi: Abi) => abi.map(item => toEventSelector(item as never))

/** First topics of everything that is followed. */
export const FOLLOWED_TOPICS: readonly Hex[] = [
  ...new Set([...TRADE_TOPICS, ...Object.values(sources).flatMap(topicsOf)]),
]

/** Whose events are followed: the deployment's contracts and the vaults that are known. */
export function followedAddresses({ contracts, trading }: Chain, vaults: Iterable<Address>): Address[] {
  return [
    ...(trading ? [trading.TradeRouter, trading.PositionManager, trading.AllocationManager] : []),
    ...[contracts.AgentRegistry, contracts.VaultTrackRegistry, contracts.PriceOracle, ...vaults],
  ]
}

const [VAULT_REGISTERED] = topicsOf(abiOf(vaultTrackRegistryAbi, ['VaultRegistered']))

/** The vault that a log says is registered; undefined for any other log. */
export function registeredVault({ contracts }: Chain, { address, topics }: NodeLog): Address | undefined {
  const [event, vault] = topics
  if (event !== VAULT_REGISTERED || vault === undefined) return undefined
  return address.toLowerCase() === contracts.VaultTrackRegistry.toLowerCase()
    ? getAddress(`0x${vault.slice(-40)}`)
    : undefined
}

/** What is known before a range of logs: positions and agents that the logs speak of. */
export type Known = {
  positionsOf(ids: readonly bigint[]): Promise<Map<bigint, TradedPosition>>
  agentsOf(ids: readonly number[]): Promise<AgentRow[]>
}

/** The rows that the logs of a range of blocks mean; `timeOf` tells the time of a log's block. Throws CHAIN_UNREACHABLE. */
export async function toRows(
  chain: Chain,
  logs: readonly NodeLog[],
  timeOf: (log: NodeLog) => number,
  known: Known,
): Promise<Rows> {
  const { contracts } = chain
  const trades = await toTrades(chain, logs, timeOf, known.positionsOf)
  const decoded = logs.flatMap((log): EventRow[] => {
    const source = sourceOf(chain, log.address)
    const event = source && decode(sources[source], log)
    if (!event) return []
    const { args, eventName: name } = event
    return [
      {
        ...{ block: Number(log.blockNumber), logIndex: Number(log.logIndex), contract: getAddress(log.address), name },
        ...{ agentId: typeof args.agentId === 'string' ? Number(args.agentId) : null, args },
        ...{ transactionHash: log.transactionHash, timestamp: timeOf(log) },
      },
    ]
  })
  const isPrice = ({ contract, name }: EventRow) => contract === contracts.PriceOracle && priceEvents.includes(name)
  const others = decoded.filter(event => !isPrice(event))
  return {
    trades,
    positions: trades.flatMap(({ type, positionId, agentId, vault, token, blockNumber, timestamp }) =>
      type === 'PositionOpened'
        ? {
            ...{ positionId: Number(positionId), agentId: Number(agentId), vault, token },
            ...{ block: Number(blockNumber), openedAt: Number(timestamp) },
          }
        : [],
    ),
    agents: await toAgents(
      others.filter(({ contract }) => contract === contracts.AgentRegistry),
      known,
    ),
    prices: decoded.filter(isPrice).map(toPrice),
    events: others,
    blocks: [...new Map(logs.map(({ blockNumber, blockHash }) => [Number(blockNumber), blockHash]))].map(
      ([number, hash]) => ({ number, hash }),
    ),
  }
}

/** The trades that the logs of whole transactions mean, oldest first. Throws CHAIN_UNREACHABLE. */
export async function toTrades(
  chain: Chain,
  logs: readonly NodeLog[],
  timeOf: (log: NodeLog) => number,
  positionsOf: Known['positionsOf'],
): Promise<Trade[]> {
  const { trading } = chain
  if (trading === undefined) return []
  const addresses = [trading.TradeRouter, trading.PositionManager].map(address => address.toLowerCase())
  const events = pairTradeEvents(logs.filter(({ address }) => addresses.includes(address.toLowerCase())).map(toLog))
  const opened = new Set(events.flatMap(({ type, positionId }) => (type === 'PositionOpened' ? [positionId] : [])))
  const older = [...new Set(events.map(({ positionId }) => positionId))].filter(id => !opened.has(id))
  const positions = older.length > 0 ? await positionsOf(older) : new Map<bigint, TradedPosition>()
  return completeTrades(chain as TradingChain, events, positions, ({ log }) => BigInt(timeOf(log)))
}

function sourceOf({ contracts, trading }: Chain, address: Hex): keyof typeof sources | undefined {
  switch (address.toLowerCase()) {
    case contracts.AgentRegistry.toLowerCase():
      return 'registry'
    case trading?.AllocationManager.toLowerCase():
      return 'allocations'
    case contracts.VaultTrackRegistry.toLowerCase():
      return 'vaultRegistry'
    case contracts.PriceOracle.toLowerCase():
      return 'oracle'
    case trading?.TradeRouter.toLowerCase():
    case trading?.PositionManager.toLowerCase():
      return undefined
    default:
      return 'vault'
  }
}

const toLog = (log: NodeLog) => ({
  ...{ topics: log.topics, data: log.data, transactionHash: log.transactionHash, log },
  ...{ blockNumber: BigInt(log.blockNumber), logIndex: Number(log.logIndex) },
})

/** What an event says, with its integers as digits; undefined where it is none that is followed. */
function decode(abi: Abi, log: NodeLog): { eventName: string; args: Record<string, unknown> } | undefined {
  try {
    const { eventName, args } = decodeEvent(abi, log)
    return { eventName: eventName ?? '', args: plain(args ?? {}) as Record<string, unknown> }
  } catch {
    return undefined // another contract's event under the same first topic
  }
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
  return value
}

/** An agent is active from its registration on: the contract says no other status until it changes. */
const ACTIVE = 1

/** What agents have become by their events, in the events' order. */
async function toAgents(events: readonly EventRow[], known: Known): Promise<AgentRow[]> {
  const changes = events.filter(({ name }) => name in agentChanges)
  const ids = [...new Set(changes.flatMap(({ agentId }) => agentId ?? []))]
  const current = new Map((await known.agentsOf(ids)).map(agent => [agent.agentId, agent]))
  return changes.flatMap(({ agentId, name, args, block, logIndex, timestamp }) => {
    if (agentId === null) return []
    const before = current.get(agentId)
    const after = agentChanges[name as keyof typeof agentChanges](args as never)
    const registered = name === 'AgentRegistered' ? { status: ACTIVE } : before
    if (registered === undefined) return []
    const row = { ...registered, ...after, agentId, block, logIndex, timestamp } as AgentRow
    current.set(agentId, row)
    return [row]
  })
}

const agentChanges = {
  AgentRegistered: ({ owner, vault, track }: Pick<AgentRow, 'owner' | 'vault' | 'track'>) => ({ owner, vault, track }),
  AgentOwnershipTransferred: ({ to }: { to: Address }) => ({ owner: to }),
  AgentStatusChanged: ({ newStatus }: { newStatus: number }) => ({ status: newStatus }),
  AgentPromoted: ({ toTrack }: { toTrack: number }) => ({ track: toTrack }),
}

/** A forced price is observed when it is posted. */
function toPrice({ block, logIndex, args, timestamp }: EventRow): PriceRow {
  const { asset, price, observedAt = timestamp } = args as { asset: Address; price: string; observedAt?: string }
  return { token: asset, block, logIndex, price: BigInt(price), observedAt: Number(observedAt), timestamp }
}
