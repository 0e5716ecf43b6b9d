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
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { type Ordering, orderings, type StandingFigures, standingFiguresOf } from '../src/history/tables/standings.ts'
import { CapitalMode } from '../src/protocol/enums.ts'
import { lastAtOrBefore } from '../src/protocol/last-at-or-before.ts'
import type { Period } from '../src/protocol/period.ts'
import { continueRecord, isExecution } from '../src/protocol/track-record.ts'
import { buildTrade, openedPosition, pairTradeEvents, type Trade } from '../src/protocol/trade-events.ts'

// Recomputes a leaderboard from nothing but the logs of a chain (and the decimals of its tokens), and compares it with a
// served one. It shares the formulas with the service, and none of its database, indexer or incremental records.

/** The deployment to verify. `fromBlock` is the block of the deployment, or an earlier one. */
export type VerifiedDeployment = { rpcUrl: string; contracts: Record<string, Address>; fromBlock: bigint }

/** What `GET /leaderboard` returns, as far as it is compared. */
export type ServedLeaderboard = {
  period: Period
  periodStart: string
  sort: Ordering
  minTrades: number
  entries: ServedEntry[]
  nextCursor: string | null
  asOf: { blockNumber: string }
}
type ServedEntry = Record<string, unknown> & {
  rank: number
  agentId: string
  owner: string
  vault: string
  track: number
  capital: 'real' | 'simulated'
  sampleBlock: string
}
type Selection = { vault?: string; track?: number; capital?: string }

type Fact = { block: number; logIndex: number; timestamp: number }
type AgentFact = Fact & { agentId: string; owner?: Address; vault?: Address; track?: number }
type PriceFact = Fact & { token: Address; price: bigint; observedAt: number }
type CapFact = Fact & { agentId: string; cap: bigint }
type History = {
  trades: Trade[]
  prices: PriceFact[]
  caps: CapFact[]
  agents: AgentFact[]
  decimals: Map<Address, number>
  timeOf: (block: bigint) => Promise<number>
}

/**
 * Compares all pages of a served leaderboard with the logs of the chain. Returns how many entries were compared, and one
 * sentence per difference. `selection` are the filters that the leaderboard was requested with.
 */
export async function verifyLeaderboard(
  deployment: VerifiedDeployment,
  served: readonly ServedLeaderboard[],
  selection: Selection = {},
): Promise<{ entries: number; differences: string[] }> {
  const [first] = served
  if (first === undefined) throw new Error('There is no leaderboard to verify.')
  const last = served.reduce(
    (newest, { asOf }) => (BigInt(asOf.blockNumber) > newest ? BigInt(asOf.blockNumber) : newest),
    0n,
  )
  const history = await readHistory(deployment, last)
  const entries = served.flatMap(page => page.entries)
  const differences: string[] = []
  const period = { period: first.period, start: Number(first.periodStart) }
  let previous: [value: number, agentId: number, mode: number] | undefined
  for (const [index, entry] of entries.entries()) {
    const name = `agent ${entry.agentId} (${entry.capital})`
    const mode = entry.capital === 'real' ? CapitalMode.Real : CapitalMode.Simulated
    const figures = await recompute(history, entry.agentId, mode, { ...period, block: BigInt(entry.sampleBlock) })
    if (figures === undefined) {
      differences.push(`${name} is served, but has no trades in the logs`)
      continue
    }
    const expected = { ...wireFigures(figures), ...agentAt(history, entry.agentId, last), rank: index + 1 }
    for (const [field, value] of Object.entries(expected))
      if (`${entry[field]}` !== `${value}`)
        differences.push(`${name}: ${field} is ${entry[field]}, the logs say ${value}`)
    const place: typeof previous = [orderings[first.sort](figures), Number(entry.agentId), mode]
    if (previous !== undefined && compare(previous, place) >= 0) differences.push(`${name} is ranked too low`)
    previous = place
  }
  const listed = new Set(entries.map(({ agentId, capital }) => `${agentId} ${capital}`))
  for (const [agentId, mode] of recordsOf(history)) {
    const capital = mode === CapitalMode.Real ? 'real' : 'simulated'
    if (listed.has(`${agentId} ${capital}`) || !isSelected(selection, capital, agentAt(history, agentId, last)))
      continue
    const figures = await recompute(history, agentId, mode, { ...period, block: last })
    if (figures !== undefined && figures.trades >= first.minTrades)
      differences.push(`agent ${agentId} (${capital}) is not served, but has ${figures.trades} trades in the logs`)
  }
  return { entries: entries.length, differences }
}

const isSelected = ({ vault, track, capital }: Selection, mode: string, agent: ReturnType<typeof agentAt>): boolean =>
  (vault === undefined || agent.vault?.toLowerCase() === vault.toLowerCase()) &&
  (track === undefined || agent.track === track) &&
  (capital === undefined || capital === mode)

function compare(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((value, index) => value !== b[index])
  return index < 0 ? 0 : (a[index] ?? 0) - (b[index] ?? 0)
}

const wireFigures = ({ pnl, gaps, ...figures }: StandingFigures) => ({
  ...figures,
  pnlUsdc: pnl,
  gaps: gaps.map(([from, to]) => `${from}/${to}`),
})

/** Returns the figures of an agent in a period as of a block; undefined if it has none. */
async function recompute(
  { trades, prices, caps, decimals, timeOf }: History,
  agentId: string,
  mode: number,
  { period, start, block }: { period: Period; start: number; block: bigint },
): Promise<StandingFigures | undefined> {
  const until = { block: Number(block), timestamp: await timeOf(block) }
  const isKnown = (fact: Fact) => fact.block <= until.block
  const executions = trades.filter(
    trade => `${trade.agentId}` === agentId && modeOf(trade) === mode && trade.blockNumber <= block,
  )
  const pricesOf = Map.groupBy(prices.filter(isKnown), ({ token }) => token)
  const ownCaps = caps.filter(fact => fact.agentId === agentId && isKnown(fact))
  const continued = continueRecord(undefined, executions, until, {
    priceAt: (token, time) => lastAtOrBefore(pricesOf.get(token) ?? [], time),
    decimalsOf: token => decimals.get(token) ?? 18,
    capAt: time => lastAtOrBefore(ownCaps, time)?.cap ?? 0n,
  })
  const found = continued?.scores.find(({ period: name, score }) => name === period && score.start === start)
  return found && standingFiguresOf(found.score)
}

const modeOf = ({ capitalMode = CapitalMode.Real }: Trade): number => capitalMode

const recordsOf = ({ trades }: History): [agentId: string, mode: number][] => [
  ...new Map(
    trades.map(trade => [`${trade.agentId} ${modeOf(trade)}`, [`${trade.agentId}`, modeOf(trade)] as [string, number]]),
  ).values(),
]

/** Returns owner, vault and track of an agent at a block. */
function agentAt({ agents }: History, agentId: string, block: bigint) {
  const facts = agents.filter(fact => fact.agentId === agentId && fact.block <= Number(block))
  return {
    owner: facts.findLast(({ owner }) => owner !== undefined)?.owner,
    vault: facts.findLast(({ vault }) => vault !== undefined)?.vault,
    track: facts.findLast(({ track }) => track !== undefined)?.track,
  }
}

const tokenRegistryAbi = parseAbi(['function tokenDecimals(address) view returns (uint8)'])

async function readHistory({ rpcUrl, contracts, fromBlock }: VerifiedDeployment, toBlock: bigint): Promise<History> {
  const client = createPublicClient({ transport: http(rpcUrl, { batch: true }) })
  const addressOf = (name: string): Address => {
    const address = contracts[name]
    if (address === undefined) throw new Error(`The deployment has no ${name}.`)
    return address
  }
  const names = ['TradeRouter', 'PositionManager', 'AllocationManager', 'PriceOracle', 'AgentRegistry']
  const logs = await readLogs(client, names.map(addressOf), fromBlock, toBlock)
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
  const of = (name: string) => logs.filter(({ address }) => getAddress(address) === getAddress(addressOf(name)))
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
