import { isExecution } from '@agent-trading-service/protocol/agent-book'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { POST_NAMES, selectPosts } from '@agent-trading-service/protocol/oracle-price'
import {
  buildTrade,
  compareLogPositions,
  type LogPosition,
  openedPosition,
  pairTradeEvents,
  type Trade,
} from '@agent-trading-service/protocol/trade-events'
import type { VaultLog } from '@agent-trading-service/protocol/vault-book'
import { type Address, createPublicClient, type GetLogsReturnType, getAddress, http, parseEventLogs } from 'viem'
import { agentRegistryAbi } from '../../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../../../contracts-abi/token-registry.ts'
import { readLogs } from '../read-logs.ts'

/** The deployment to verify. `fromBlock` is the block of the deployment, or an earlier one. */
export type VerifiedDeployment = { rpcUrl: string; contracts: Record<string, Address>; fromBlock: bigint }

export type Fact = { block: number; logIndex: number; timestamp: number }
type AgentFact = Fact & { agentId: string; owner?: Address; vault?: Address; track?: number }
type PriceFact = Fact & { token: Address; price: bigint; observedAt: number }
type CapFact = Fact & { agentId: string; cap: bigint }
/** What the logs up to a block say. */
export type LoggedHistory = {
  trades: Trade[]
  prices: PriceFact[]
  caps: CapFact[]
  agents: AgentFact[]
  /** Of the vault that was asked for. */
  vaultLogs: VaultLog[]
  decimals: Map<Address, number>
  timeOf: (block: bigint) => Promise<number>
}

/** Reads the logs of a deployment, and those of one of its vaults, up to a block, through its node alone. */
export async function readLoggedHistory(
  { rpcUrl, contracts, fromBlock }: VerifiedDeployment,
  toBlock: bigint,
  vault?: Address,
): Promise<LoggedHistory> {
  const client = createPublicClient({ transport: http(rpcUrl, { batch: true }) })
  const addressOf = (name: string): Address => {
    const address = contracts[name]
    if (address === undefined) throw new Error(`The deployment has no ${name}.`)
    return address
  }
  const names = ['PositionManager', 'AllocationManager', 'AgentRegistry', 'TokenRegistry']
  const addresses = [...names.map(addressOf), ...(vault === undefined ? [] : [vault])]
  const permanent = await readLogs(client, addresses, [fromBlock, toBlock])
  const { routers, oracles, namings } = namedContracts(permanent, addressOf)
  const named = await readLogs(client, [...routers, ...oracles], [fromBlock, toBlock])
  const logs = [...permanent, ...named].sort(compareLogPositions)
  const times = new Map<bigint, Promise<number>>()
  const timeOf = (block: bigint): Promise<number> => {
    const known = times.get(block)
    if (known) return known
    const time = client.getBlock({ blockNumber: block }).then(({ timestamp }) => Number(timestamp))
    times.set(block, time)
    return time
  }
  const blocks = [...new Set(logs.map(({ blockNumber }) => blockNumber))]
  const timestamps = new Map(await Promise.all(blocks.map(async block => [block, await timeOf(block)] as const)))
  const factOf = ({ blockNumber, logIndex }: LogPosition): Fact => ({
    block: Number(blockNumber),
    logIndex,
    timestamp: timestamps.get(blockNumber) ?? 0,
  })
  const ofContracts = (contracts: readonly Address[]) => {
    const wanted = contracts.map(contract => getAddress(contract))
    return logs.filter(({ address }) => wanted.includes(getAddress(address)))
  }
  const of = (name: string) => ofContracts([addressOf(name)])
  const tradeLogs = ofContracts([...routers, addressOf('PositionManager')])
  const trades = toTrades(tradeLogs, block => timestamps.get(block) ?? 0)
  const tokens = [...new Set(trades.map(({ token }) => token))]
  const decimals = await Promise.all(
    tokens.map(token =>
      client.readContract({
        address: addressOf('TokenRegistry'),
        abi: tokenRegistryAbi,
        functionName: 'tokenDecimals',
        args: [token],
      }),
    ),
  )
  return {
    trades,
    timeOf,
    decimals: new Map(tokens.map((token, index) => [token, Number(decimals[index])])),
    prices: pricesOf([...namings, ...parseEventLogs({ abi: priceOracleAbi, logs: ofContracts(oracles) })], {
      factOf,
      initial: addressOf('PriceOracle'),
    }),
    vaultLogs: parseEventLogs({ abi: mandateVaultAbi, logs: vault === undefined ? [] : ofContracts([vault]) }).map(
      log => ({
        ...factOf(log),
        contract: getAddress(log.address),
        name: log.eventName,
        args: { ...log.args },
      }),
    ),
    caps: parseEventLogs({
      abi: allocationManagerAbi,
      logs: of('AllocationManager'),
      eventName: ['AllocationCreated', 'AllocationCapUpdated'],
    })
      .map(log => ({
        ...factOf(log),
        agentId: `${log.args.agentId}`,
        cap: 'newCap' in log.args ? log.args.newCap : log.args.cap,
      }))
      .filter(({ cap }) => cap > 0n),
    agents: parseEventLogs({
      abi: agentRegistryAbi,
      logs: of('AgentRegistry'),
      eventName: ['AgentRegistered', 'AgentOwnershipTransferred', 'AgentPromoted'],
    }).map((log): AgentFact => {
      const fact = { ...factOf(log), agentId: `${log.args.agentId}` }
      if (log.eventName === 'AgentOwnershipTransferred') return { ...fact, owner: log.args.to }
      if (log.eventName === 'AgentPromoted') return { ...fact, track: log.args.toTrack }
      return { ...fact, owner: log.args.owner, vault: log.args.vault, track: log.args.track }
    }),
  }
}

type NamedLog = LogPosition & { address: Address; eventName: string; args: object }

/**
 * Returns the routers and oracles that the permanent contracts name, with the configured ones, and the namings of
 * oracles.
 */
function namedContracts(permanent: GetLogsReturnType, addressOf: (name: string) => Address) {
  const from = (name: string) => permanent.filter(({ address }) => getAddress(address) === getAddress(addressOf(name)))
  const namings = parseEventLogs({
    abi: tokenRegistryAbi,
    logs: from('TokenRegistry'),
    eventName: 'PriceOracleUpdated',
  })
  const routers = parseEventLogs({
    abi: positionManagerAbi,
    logs: from('PositionManager'),
    eventName: 'TradeRouterUpdated',
  })
  return {
    routers: [addressOf('TradeRouter'), ...routers.map(({ args }) => args.current)],
    oracles: [addressOf('PriceOracle'), ...namings.map(({ args }) => args.current)],
    namings,
  }
}

/** Returns the prices of the oracles in force. `initial` is the one before the first naming. */
function pricesOf(
  logs: readonly NamedLog[],
  { factOf, initial }: { factOf: (log: LogPosition) => Fact; initial: Address },
): PriceFact[] {
  const events = logs
    .filter(({ eventName }) => eventName === 'PriceOracleUpdated' || POST_NAMES.includes(eventName))
    .sort(compareLogPositions)
    .map(log => ({
      ...factOf(log),
      contract: getAddress(log.address),
      name: log.eventName,
      args: log.args as { asset: Address; price: bigint; observedAt?: bigint },
    }))
  return selectPosts(events, getAddress(initial)).map(({ block, logIndex, timestamp, args }) => ({
    block,
    logIndex,
    timestamp,
    token: getAddress(args.asset),
    price: args.price,
    observedAt: Number(args.observedAt ?? timestamp),
  }))
}

function toTrades(logs: GetLogsReturnType, timeOf: (block: bigint) => number): Trade[] {
  const events = pairTradeEvents(logs)
  const positions = new Map<bigint, { token: Address; vault: Address; capitalMode: number }>()
  for (const event of events) {
    const opened = openedPosition(event)
    const capitalMode = event.opensSimulated ? CapitalMode.Simulated : CapitalMode.Real
    if (opened) positions.set(event.positionId, { ...opened, capitalMode })
  }
  return events.flatMap(event => {
    const position = positions.get(event.positionId)
    if (position === undefined) throw new Error(`Position ${event.positionId} was opened before the first block read.`)
    const timestamp = BigInt(timeOf(event.log.blockNumber))
    return isExecution(event)
      ? [buildTrade(event, { ...position, decimals: undefined, rule: undefined, timestamp })]
      : []
  })
}
