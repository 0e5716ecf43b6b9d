import { restrictionText } from '@agent-trading-service/protocol/token-restriction'
import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { type Address, hexToBigInt } from 'viem'
import { checkReader } from '../chain/call-service-reader.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { contractsWithoutCode } from '../chain/contracts-without-code.ts'
import { isHalted as isChainHalted } from '../chain/halted-chain.ts'
import { getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { readTree } from '../chain/read-tree.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { isDollar, readRestrictedTokens } from '../chain/token-restrictions.ts'
import { ageSeconds, clockSkewSeconds } from '../clock.ts'
import { allNamed } from '../concurrency.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { judgePrices } from '../doctor/judge-prices.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { LaneStatus } from '../executor/object.ts'
import type { ForeignUse } from '../executor/pause-rules.ts'
import { addressOfKey } from '../executor/signing-account.ts'
import { undefinedIfUnavailable } from '../history/read-snapshot.ts'
import type { MigrationState } from '../history/store.ts'
import type { KeeperStatus } from '../keeper/position-report.ts'
import { isReachable } from '../payments/facilitator.ts'
import { calendarOfProvider } from '../price-providers/price-provider.ts'
import { postsFeedback } from '../resources/erc8004.ts'
import { presentAsOf } from '../resources/primitives.ts'
import type { Lane, ServiceReadiness as Readiness } from '../resources/service-readiness.ts'
import { presentRestriction } from '../resources/token.ts'
import { compareNodes, silenceOf } from '../rpc/compare-nodes.ts'
import { blockRequest } from '../rpc/requests.ts'
import { findDeploymentFaults } from './find-deployment-faults.ts'
import {
  accountsWithoutRole,
  capitalModeCalls,
  roleCalls,
  toWatchedAccounts,
  vaultsWithSimulatedCapital,
  watchedAccountCalls,
} from './readiness-calls.ts'

/** A lane whose oldest transaction has been pending for longer gets nothing included. */
const MAX_PENDING_SECONDS = 60
/** An index that is further behind in block time does not move. */
export const MAX_INDEX_LAG_SECONDS = 300
/** An account of the operator's that pays for fewer cannot be relied on in an emergency. */
const MIN_WATCHED_TRANSACTIONS = 20
/** The cron trigger starts a keeper cycle every minute. */
const MAX_KEEPER_CYCLE_AGE_SECONDS = 150n

/**
 * Returns the report with all balances, the block it describes, the reasons why no agent could open a position, and the
 * other problems. Throws NOT_READY if no chain is configured or the node cannot be reached.
 */
export async function readReadiness(context: Context) {
  const { config } = context
  if (config.chain === undefined) throw refuse('NOT_READY', { problem: 'no chain is configured' })
  const { state } = await context.readinessCache.getOrRead('readiness', async () => {
    const state = await readState(context)
    return { state, asOf: presentAsOf(state.block) }
  })
  const { report, block } = state
  return {
    report,
    block,
    isHalted: state.isHalted,
    nodes: state.nodes,
    watched: state.watched,
    blocking: blockingProblems(config, state),
    partial: partialProblems(config, state),
  }
}

/** Reads everything that readiness depends on. Throws NOT_READY if the node cannot be reached. */
async function readState(context: Context) {
  const { config, chain } = context
  const accounts = {
    executors: config.executorKeys.map(addressOfKey),
    relayers: config.relayerKey ? [addressOfKey(config.relayerKey)] : [],
    updaters: config.oracleUpdaterKey ? [addressOfKey(config.oracleUpdaterKey)] : [],
  }
  const vaultsAndTokens = readVaultsAndTokens(chain)
  const read = await allNamed({
    vaultsAndTokens,
    rules: readTree(chain, {
      capitalModes: capitalModeCalls(chain),
      roles: roleCalls(chain, accounts),
      watched: watchedAccountCalls(chain, config.watchedAccounts),
    }),
    // Not by a call: there go-ethereum says that gas costs nothing.
    baseFee: Object.keys(config.watchedAccounts).length > 0 ? readBaseFee(chain) : 0n,
    registration: getRegistrationTerms(chain),
    reader: checkReader(chain),
    missing: contractsWithoutCode(chain),
    executors: lanesOf(config.executorKeys.length > 0 && config.trading ? () => context.executor : undefined),
    relayers: lanesOf(config.relayerKey ? () => context.relayer : undefined),
    updaters: lanesOf(config.oracleUpdaterKey ? () => context.updater : undefined),
    reporters: context.reporter?.status(),
    keeper: context.keeper?.status(),
    facilitator: checkFacilitator(config),
    reach: context.history.cursor(),
    migrations: context.history.migrations().catch(undefinedIfUnavailable),
    // A database that cannot be read is a problem of its own.
    operations: context.history.pendingOperations().catch(() => undefined),
    events: config.trading && context.live.status(),
    findings: config.trading ? findDeploymentFaults(context, vaultsAndTokens) : [],
    nodes: compareNodes(chain.rpc, chain.id),
  }).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    const { code } = error.body
    if (code === 'NODES_BEHIND') throw refuse('NOT_READY', { problem: 'the nodes are behind' }, { cause: error.cause })
    if (code !== 'CHAIN_UNREACHABLE') throw error
    const refused = chain.rpc.endpoints.filter(({ gatewayStatus }) => gatewayStatus !== undefined)
    const reasons = refused.map(endpoint => `: ${endpoint.name} ${silenceOf(endpoint)}`).join('')
    throw refuse('NOT_READY', { problem: `the node cannot be reached${reasons}` }, { cause: error.cause })
  })
  const { executors, relayers, updaters, reporters, keeper, nodes } = read
  const { block, registered } = read.vaultsAndTokens
  const { capitalModes, roles, watched } = read.rules.values
  const withoutRole = accountsWithoutRole(accounts, roles)
  const vaultsWithPaper = vaultsWithSimulatedCapital(capitalModes)
  const restricted = await readRestrictedTokens(chain, registered)
  const pausedVaults = registered.vaults.filter(({ tradingPaused }) => tradingPaused)
  const withoutIdle = registered.vaults.filter(({ idleAssets }) => idleAssets === 0n)
  const prices = judgePrices(registered, calendar => calendarOfProvider(config.priceProvider, calendar))
  const lanes = lanesIn({ executors, relayers, updaters, reporters, keeper })
  const lagSeconds = ageSeconds(block)
  // On a chain that makes blocks on demand, only a transaction that waits shows that it makes none.
  const isHalted = chain.makesBlocksOnDemand
    ? lagSeconds >= MAX_PENDING_SECONDS && lanes.some(lane => lane.oldestPendingSeconds >= MAX_PENDING_SECONDS)
    : isChainHalted(chain, block)
  const frozen = isHalted ? `has shown no newer block for ${lagSeconds} seconds` : null
  const report: Omit<Readiness, 'status' | 'problems'> = {
    service: config.service,
    rpc: {
      blockNumber: `${block.number}`,
      blockTimestamp: `${block.timestamp}`,
      lagSeconds,
      clockSkewSeconds: clockSkewSeconds(block),
      nodes: nodes.map(({ place, problem }) => ({ place, problem: problem ?? frozen })),
    },
    reader: { path: read.reader.path, problem: read.reader.problem ?? null },
    contracts: { missing: read.missing },
    executor: presentLanes(executors, withoutRole.executors),
    relayer: presentLanes(relayers, withoutRole.relayers),
    updater: presentLanes(updaters, withoutRole.updaters),
    reporter: presentLanes(reporters, []),
    keeper: presentKeeper(keeper),
    history: presentHistory(read.reach, block, read.migrations),
    oracle: {
      stale: prices.overdue,
      unsettled: prices.unsettled,
      market: prices.market,
      nextOpen: prices.nextOpen === undefined ? null : `${prices.nextOpen}`,
      secondsLeft: prices.secondsLeft,
    },
    restricted: restricted.map(({ vault, token, restriction }) => ({
      vault: vaultSlug(vault),
      symbol: token.symbol,
      ...presentRestriction(restriction),
    })),
    timelock: {
      pending: read.operations?.length ?? 0,
      unannounced: (read.operations ?? []).filter(id => !config.announcedOperations.includes(id)),
    },
    facilitator: read.facilitator,
    events: {
      streams: read.events?.streams ?? 0,
      blockNumber: read.events?.block === undefined ? null : `${read.events.block}`,
      failing: read.events?.isFailing ?? false,
    },
    vaults: { withoutIdle: withoutIdle.map(vault => vaultSlug(vault)) },
    paused: { registry: read.registration.terms.paused, vaults: pausedVaults.map(vault => vaultSlug(vault)) },
    findings: read.findings,
  }
  /** Whether some vault lets an agent open a position: it has idle USDC, or a track on paper. */
  const hasCapital = registered.vaults.some(
    ({ address, idleAssets }) => idleAssets > 0n || vaultsWithPaper.has(address),
  )
  return {
    report,
    block,
    isHalted,
    registered,
    restricted,
    prices,
    executors,
    relayers,
    updaters,
    reporters,
    keeper,
    withoutRole,
    hasCapital,
    nodes,
    watched: toWatchedAccounts(watched, read.baseFee + config.priorityFeeWei),
  }
}

const readBaseFee = async ({ rpc }: Chain) =>
  hexToBigInt((await rpc.read(blockRequest('latest')))?.baseFeePerGas ?? '0x0')

type ReadinessState = Awaited<ReturnType<typeof readState>>

const presentLane = (status: LaneStatus, withoutRole: readonly Address[]): Lane => ({
  address: status.address,
  balanceWei: status.balanceWei === undefined ? null : `${status.balanceWei}`,
  nextNonce: status.nextNonce ?? null,
  hasRole: !withoutRole.includes(status.address),
  pending: status.pending,
  oldestPendingSeconds: status.oldestPendingSeconds,
  depth: status.depth,
  paused: status.pausedFor !== undefined,
  pausedFor: status.pausedFor ?? null,
  foreignUse: status.foreignUse
    ? {
        nonce: status.foreignUse.nonce,
        since: `${Math.floor(status.foreignUse.since / 1000)}`,
        transactionHash: status.foreignUse.hash ?? null,
        to: status.foreignUse.to ?? null,
      }
    : null,
})

/** Presents the lanes of a role; undefined if the role has no account. `withoutRole` are accounts that lack theirs. */
const presentLanes = (
  lanes: readonly LaneStatus[] | undefined,
  withoutRole: readonly Address[],
): Readiness['executor'] => ({
  configured: lanes !== undefined,
  lanes: (lanes ?? []).map(status => presentLane(status, withoutRole)),
})

const presentKeeper = (status: KeeperStatus | undefined): Readiness['keeper'] => ({
  configured: status !== undefined,
  lastEvaluation: status?.lastEvaluation ?? null,
  openPositions: status?.openPositions ?? 0,
  pendingExits: status?.pendingExits ?? 0,
  lanes: (status?.lanes ?? []).map(lane => presentLane(lane, [])),
})

/** Presents how far the index is. `reach` is the cursor's block, `head` the newest. */
const presentHistory = (
  reach: { block: number; timestamp: number } | undefined,
  head: Block,
  migrations: MigrationState | undefined,
): Readiness['history'] => ({
  cursor: reach === undefined ? null : `${reach.block}`,
  headBlock: `${head.number}`,
  lagBlocks: reach === undefined ? null : Math.max(0, Number(head.number) - reach.block),
  lagSeconds: reach === undefined ? null : Math.max(0, Number(head.timestamp) - reach.timestamp),
  pendingMigrations: migrations?.pending ?? null,
})

const lanesIn = ({
  executors = [],
  relayers = [],
  updaters = [],
  reporters = [],
  keeper,
}: { [role in 'executors' | 'relayers' | 'updaters' | 'reporters']: LaneStatus[] | undefined } & {
  keeper: KeeperStatus | undefined
}): LaneStatus[] => [...executors, ...relayers, ...updaters, ...reporters, ...(keeper?.lanes ?? [])]

/** Returns the reasons why no agent could open a position. */
function blockingProblems(config: Config, state: ReadinessState): string[] {
  const { report, registered, prices, executors, withoutRole, hasCapital, nodes } = state
  const { rpc, reader, contracts, paused } = report
  const hasVaults = registered.vaults.length > 0
  return sentences([
    reader.path === 'none' &&
      `no node serves quotes (${reader.problem}): deploy ServiceReader, or use a node with state overrides`,
    nodes.some(({ isDisputed }) => isDisputed) && 'the nodes have different chains, so what they return may be false',
    config.trading === undefined && 'the trade router is not configured',
    executors === undefined && 'no executor account is configured',
    contracts.missing.length > 0 && `contracts have no code: ${contracts.missing.join(', ')}`,
    state.isHalted && `the newest block is ${rpc.lagSeconds} seconds old`,
    executors && !executors.some(canSend) && `no executor account can send${reasonsOf(executors)}`,
    executors?.some(({ gasPriceRatio = 0 }) => gasPriceRatio > 1) &&
      'gas costs more than the highest price of GAS_PRICE_GWEI, so only reductions, exits and stops are sent',
    paused.registry && 'the agent registry is paused',
    executors?.every(({ address }) => withoutRole.executors.includes(address)) &&
      'no executor account has EXECUTOR_ROLE',
    !hasVaults && 'there is no vault',
    hasVaults && !hasCapital && 'no vault has idle USDC',
    hasVaults && paused.vaults.length === registered.vaults.length && 'trading is paused in every vault',
    prices.hasNone && 'no token has a fresh price',
  ])
}

/** Returns what the operator should fix even though positions can be opened. */
function partialProblems(
  config: Config,
  { report, block, executors, relayers, updaters, reporters, keeper, withoutRole, watched, restricted }: ReadinessState,
): string[] {
  const { timelock, rpc, history, reader, facilitator, oracle, paused, events, vaults, findings } = report
  const lanes = lanesIn({ executors, relayers, updaters, reporters, keeper })
  const roleless = Object.values(withoutRole).flat()
  const wrong = findings.filter(({ check, verdict }) => verdict === 'wrong' && check !== 'role')
  const migrations = history.pendingMigrations ?? []
  const cannotSend = (name: string, accounts: readonly LaneStatus[] | undefined) =>
    accounts && !accounts.some(canSend) && `the ${name} cannot send${reasonsOf(accounts)}`
  return sentences([
    ...wrong.map(({ sentence }) => sentence.replace(/\.$/, '')),
    ...rpc.nodes.map(({ place, problem }) => problem !== null && `node ${place} of RPC_URL ${problem}`),
    rpc.clockSkewSeconds !== 0 && clockSentence(rpc.clockSkewSeconds),
    ...lanes.map(({ address, foreignUse }) => foreignUse && foreignUseSentence(address, foreignUse)),
    ...timelock.unannounced.map(
      id =>
        `the timelock has the operation ${id}, which ANNOUNCED_OPERATIONS does not name: cancel it unless you scheduled it`,
    ),
    ...watched.map(
      ({ name, address, transactions }) =>
        transactions < MIN_WATCHED_TRANSACTIONS &&
        `${name} ${address} has ether for ${transactions} transactions, expected ${MIN_WATCHED_TRANSACTIONS} or more`,
    ),
    reader.path === 'override' && 'ServiceReader is not deployed, so each quote sends its code: 36 KiB',
    roleless.length > 0 && `accounts lack their role: ${roleless.join(', ')}`,
    vaults.withoutIdle.length > 0 && `vaults have no idle USDC: ${vaults.withoutIdle.join(', ')}`,
    events.failing && 'the event streams do not follow the index',
    (history.lagSeconds ?? 0) > MAX_INDEX_LAG_SECONDS && `the index is ${history.lagSeconds} seconds behind`,
    relayers === undefined && 'the relayer is not configured',
    cannotSend('relayer', relayers),
    cannotSend('updater', updaters),
    cannotSend('reporter', reporters),
    reporters && !postsFeedback(config) && 'the reporter has no reputation registry or no base URL',
    keeper === undefined && 'no keeper is configured',
    keeper && !isCycling(keeper, block) && 'the keeper does not evaluate the positions',
    cannotSend('keeper', keeper?.lanes),
    history.cursor === null && 'there is no index yet',
    migrations.length > 0 && `the database of the index lacks migrations: ${migrations.join(', ')}`,
    !facilitator.reachable && 'the facilitator does not respond',
    facilitator.kind === 'unusable' && 'registration fees are misconfigured and cannot be paid',
    executors?.every(canSend) === false && `an executor account cannot send${reasonsOf(executors)}`,
    oracle.stale.length > 0 && `prices are stale: ${oracle.stale.join(', ')}`,
    ...restricted.map(
      ({ vault, token, restriction }) =>
        `${vaultSlug(vault)} cannot ${isDollar({ vault, token }) ? 'pay' : 'sell'} ${token.symbol}: ${restrictionText(restriction)}; only the issuer can lift that`,
    ),
    oracle.unsettled.length > 0 &&
      `prices are from before a corporate action, so nothing buys and no exit fires: ${oracle.unsettled.join(', ')}`,
    paused.vaults.length > 0 && 'trading is paused in a vault',
    config.problems.length > 0 && `variables are invalid: ${config.problems.join(', ')}`,
  ])
}

const clockSentence = (skew: number) =>
  `the clock is ${Math.abs(skew)} seconds ${skew > 0 ? 'ahead of' : 'behind'} the nodes' clocks, whose time is used: correct it`

function foreignUseSentence(address: Address, { nonce, since, hash, to }: ForeignUse) {
  const transaction = hash === undefined ? `nonce ${nonce}` : `${hash} to ${to ?? 'a new contract'} with nonce ${nonce}`
  return `others have used the key of ${address} since ${new Date(since).toISOString()}, at last for ${transaction}: is a second copy of the service running?`
}

const sentences = (problems: readonly (string | false | null | undefined)[]): string[] =>
  problems.filter(problem => typeof problem === 'string')

const lanesOf = async (executor: (() => Context['executor']) | undefined) => executor?.().status()

async function checkFacilitator({ payment }: Config): Promise<Readiness['facilitator']> {
  if (payment === undefined) return { kind: 'none', reachable: true }
  if (payment === 'unusable') return { kind: 'unusable', reachable: true }
  const { facilitatorUrl } = payment
  if (facilitatorUrl === undefined) return { kind: 'own', reachable: true }
  return { kind: 'hosted', reachable: await isReachable(facilitatorUrl) }
}

const canSend = ({ pausedFor, oldestPendingSeconds, nextNonce }: LaneStatus) =>
  pausedFor === undefined && oldestPendingSeconds < MAX_PENDING_SECONDS && nextNonce !== undefined

/** Returns what nodes say about the transactions that they refuse of these lanes. */
const reasonsOf = (lanes: readonly LaneStatus[] = []) =>
  lanes
    .flatMap(({ address, refusal }) =>
      refusal === undefined ? [] : `: a node refuses those of ${address}, “${refusal}”`,
    )
    .join('')

const isCycling = ({ lastEvaluation }: KeeperStatus, { timestamp }: Block) =>
  lastEvaluation !== undefined && timestamp - BigInt(lastEvaluation.at) <= MAX_KEEPER_CYCLE_AGE_SECONDS
