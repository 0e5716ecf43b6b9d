import { decodeEvent, eventTopic } from '@agent-trading-service/protocol/decode-event'
import { TRADE_TOPICS } from '@agent-trading-service/protocol/trade-events'
import { type Abi, type Address, getAddress, type Hex, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { Chain } from '../chain/configured-chain.ts'
import type { NodeLog } from '../rpc/requests.ts'
import type { ContractEvent } from './tables/events.ts'

const selectEvents = (abi: Abi, names: readonly string[]): Abi =>
  abi.filter(item => item.type === 'event' && names.includes(item.name))

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
    'Deposit',
    'Withdraw',
    'Transfer',
    'TradingPausedUpdated',
    'LiquidityPausedUpdated',
    'TokenEnabledUpdated',
  ]),
  oracle: selectEvents(priceOracleAbi, ['PriceUpdated', 'PriceForced']),
} as const
type FollowedContract = keyof typeof followedEvents

/** The first topics of all followed events and of the events that make up trades. */
export const FOLLOWED_TOPICS: readonly Hex[] = [
  ...new Set([
    ...TRADE_TOPICS,
    ...Object.values(followedEvents).flatMap(abi => abi.map(item => toEventSelector(item as never))),
  ]),
]

/** Contracts that the registries name. They are followed even though they are not configured. */
export type NamedContracts = {
  vaults: Set<Address>
  /** The contracts that owners sign messages for: the current one and earlier ones. */
  ownerControls: Set<Address>
}

/** Returns the contracts with followed events: the deployment's and the named ones. */
export function followedAddresses({ contracts, trading }: Chain, { vaults, ownerControls }: NamedContracts): Address[] {
  const addresses = [
    contracts.AgentRegistry,
    contracts.VaultTrackRegistry,
    contracts.PriceOracle,
    ...vaults,
    ...ownerControls,
  ]
  if (trading) addresses.push(trading.TradeRouter, trading.PositionManager, trading.AllocationManager)
  return addresses
}

const VAULT_REGISTERED = eventTopic(vaultTrackRegistryAbi, 'VaultRegistered')

const OWNER_CONTROLS_UPDATED = eventTopic(agentRegistryAbi, 'OwnerControlsUpdated')

/** Adds the contract that a log names, if it does. Returns whether it is new. */
export function addNamedContract({ contracts }: Chain, named: NamedContracts, log: NodeLog): boolean {
  const [topic, first, second] = log.topics
  const isFrom = (address: Address) => log.address.toLowerCase() === address.toLowerCase()
  if (topic === VAULT_REGISTERED && isFrom(contracts.VaultTrackRegistry)) return addTopic(named.vaults, first)
  if (topic === OWNER_CONTROLS_UPDATED && isFrom(contracts.AgentRegistry)) return addTopic(named.ownerControls, second)
  return false
}

function addTopic(addresses: Set<Address>, topic: Hex | undefined): boolean {
  const before = addresses.size
  if (topic !== undefined) addresses.add(getAddress(`0x${topic.slice(-40)}`))
  return addresses.size > before
}

/** Returns the event of a log; undefined for logs of trades and of events that are not followed. */
export function decodeFollowedEvent(
  chain: Chain,
  { ownerControls }: NamedContracts,
  log: NodeLog,
  timestamp: number,
): ContractEvent | undefined {
  const contract = ownerControls.has(getAddress(log.address)) ? 'ownerControls' : contractAt(chain, log.address)
  const decoded = contract && tryDecode(followedEvents[contract], log)
  if (decoded === undefined) return undefined
  const { name, args } = decoded
  return {
    block: Number(log.blockNumber),
    logIndex: Number(log.logIndex),
    contract: getAddress(log.address),
    name,
    agentId: typeof args.agentId === 'string' ? Number(args.agentId) : null,
    args,
    transactionHash: log.transactionHash,
    timestamp,
  }
}

function contractAt({ contracts, trading }: Chain, address: Hex): FollowedContract | undefined {
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
