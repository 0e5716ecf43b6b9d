import { isExecution } from '@agent-trading-service/protocol/agent-book'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { buildTrade, openedPosition, pairTradeEvents, type Trade } from '@agent-trading-service/protocol/trade-events'
import type { VaultLog } from '@agent-trading-service/protocol/vault-book'
import {
  type Address,
  createPublicClient,
  type GetLogsReturnType,
  getAddress,
  http,
  type PublicClient,
  parseAbi,
  parseEventLogs,
} from 'viem'
import { agentRegistryAbi } from '../../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../../../contracts-abi/price-oracle.ts'

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

const tokenRegistryAbi = parseAbi(['function tokenDecimals(address) view returns (uint8)'])

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
  const names = ['TradeRouter', 'PositionManager', 'AllocationManager', 'PriceOracle', 'AgentRegistry']
  const addresses = [...names.map(addressOf), ...(vault === undefined ? [] : [vault])]
  const logs = await readLogs(client, addresses, fromBlock, toBlock)
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
  const factOf = ({ blockNumber, logIndex }: { blockNumber: bigint; logIndex: number }): Fact => ({
    block: Number(blockNumber),
    logIndex,
    timestamp: timestamps.get(blockNumber) ?? 0,
  })
  const ofContract = (contract: Address) => logs.filter(({ address }) => getAddress(address) === getAddress(contract))
  const of = (name: string) => ofContract(addressOf(name))
  const trades = toTrades([...of('TradeRouter'), ...of('PositionManager')], block => timestamps.get(block) ?? 0)
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
    prices: parseEventLogs({
      abi: priceOracleAbi,
      logs: of('PriceOracle'),
      eventName: ['PriceUpdated', 'PriceForced'],
    }).map(log => ({
      ...factOf(log),
      token: getAddress(log.args.asset),
      price: log.args.price,
      observedAt: 'observedAt' in log.args ? Number(log.args.observedAt) : factOf(log).timestamp,
    })),
    vaultLogs: parseEventLogs({ abi: mandateVaultAbi, logs: vault === undefined ? [] : ofContract(vault) }).map(
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

const MAX_BLOCKS_PER_REQUEST = 10_000n

/** Reads logs in order, in ranges that the node accepts. */
async function readLogs(
  client: PublicClient,
  address: Address[],
  from: bigint,
  to: bigint,
): Promise<GetLogsReturnType> {
  const logs: GetLogsReturnType = []
  let blocks = MAX_BLOCKS_PER_REQUEST
  for (let fromBlock = from; fromBlock <= to; ) {
    const toBlock = fromBlock + blocks - 1n < to ? fromBlock + blocks - 1n : to
    try {
      logs.push(...(await client.getLogs({ address, fromBlock, toBlock })))
      fromBlock = toBlock + 1n
    } catch (error) {
      if (blocks === 1n) throw error
      blocks /= 2n
    }
  }
  return logs
}
