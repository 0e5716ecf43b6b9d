import { assertOperator } from '../call.ts'
import { withDeadline } from '../concurrency.ts'
import type { Context } from '../context.ts'
import type { LaneStatus } from '../executor/object.ts'
import { accountNames } from '../executor/signing-account.ts'
import type { KeeperStatus } from '../keeper/position-report.ts'
import { type GaugeSample, gauge, OPEN_METRICS_TYPE, openMetricsText } from '../metrics/open-metrics.ts'
import { readReadiness } from '../readiness/read-readiness.ts'
import type { TextOperation } from './operation.ts'

/** A scrape responds in time whatever a node does; Prometheus gives up after ten seconds by default. */
const MAX_READ_MS = 4_000

export const getMetrics = {
  kind: 'text',
  id: 'getMetrics',
  method: 'get',
  path: '/metrics',
  tag: 'Operator',
  summary: 'Show the metrics of the deployment',
  description:
    "Returns counters of all isolates and the present state of every part, as OpenMetrics 1.0 text for Prometheus. A part that cannot be read within four seconds is 0 in `ats_part_up` and has no other gauges. The state is read at most every five seconds. Requires the operator's secret as a bearer token.",
  errors: [401, 503],
  contentType: OPEN_METRICS_TYPE,
  example:
    '# TYPE ats_requests counter\n# HELP ats_requests Requests.\nats_requests_total{operation="getHealth",surface="http",status="2xx"} 3\n# EOF\n',
  run: async (context, call) => {
    assertOperator(context.config, call)
    return context.metrics.share(() => writeMetrics(context))
  },
} as const satisfies TextOperation

async function writeMetrics(context: Context): Promise<string> {
  const deadline = Date.now() + MAX_READ_MS
  const totals = context.metrics.read().catch(() => undefined)
  const [gauges, deltas] = await Promise.all([
    readGauges(context, deadline),
    withDeadline(totals, deadline, () => undefined),
  ])
  const isComplete: GaugeSample = gauge('ats_part_up', { part: 'totals' }, deltas === undefined ? 0 : 1)
  return openMetricsText(deltas ?? [], [...gauges, isComplete])
}

/** How long a lane waits for a node; without one, it says what it knows. */
const MAX_NODE_WAIT_MS = 1_000
const PAUSE_REASONS = ['funds', 'shared key'] as const

/** Reads every part of the service that is configured, until `deadline` (epoch milliseconds). Never throws. */
async function readGauges(context: Context, deadline: number): Promise<GaugeSample[]> {
  const { config } = context
  const names = accountNames(config)
  const lanes = (statuses: readonly LaneStatus[]) => statuses.flatMap(status => laneGauges(status, names))
  const partsRead = await Promise.all(
    Object.entries(partsOf(context, lanes)).map(async ([part, read]) => {
      const samples = await withDeadline(
        read().catch(() => undefined),
        deadline,
        () => undefined,
      )
      return [gauge('ats_part_up', { part }, samples === undefined ? 0 : 1), ...(samples ?? [])]
    }),
  )
  const samples = partsRead.flat()
  const isReadinessKnown = samples.some(({ name }) => name === 'ats_ready')
  return [
    gauge('ats_build', { version: config.version, chain_id: `${config.chain?.id ?? ''}` }, 1),
    ...samples,
    ...(isReadinessKnown ? [] : [gauge('ats_ready', {}, 0)]),
  ]
}

type ReadPart = () => Promise<GaugeSample[]>

/** Returns how to read each configured part. */
function partsOf(
  context: Context,
  lanes: (statuses: readonly LaneStatus[]) => GaugeSample[],
): Record<string, ReadPart> {
  const { config } = context
  if (config.chain === undefined) return {}
  const hasTrading = config.trading !== undefined
  return {
    readiness: () => readinessGauges(context),
    ...(hasTrading &&
      config.executorKeys.length > 0 && {
        executor: async () => lanes(await context.executor.status(MAX_NODE_WAIT_MS)),
      }),
    ...(config.relayerKey && { relayer: async () => lanes(await context.relayer.status(MAX_NODE_WAIT_MS)) }),
    ...(config.oracleUpdaterKey && { updater: async () => lanes(await context.updater.status(MAX_NODE_WAIT_MS)) }),
    ...(config.reporterKey && {
      reporter: async () => lanes((await context.reporter?.status(MAX_NODE_WAIT_MS)) ?? []),
    }),
    ...(hasTrading && config.keeper && { keeper: () => keeperGauges(context, lanes) }),
    ...(hasTrading && { 'event streams': () => streamGauges(context) }),
    'intake switches': async () => [gauge('ats_closed_intakes', {}, (await context.intakeSwitches.closures()).length)],
  }
}

async function readinessGauges(context: Context): Promise<GaugeSample[]> {
  const { report, block, isHalted, nodes, watched, blocking, partial } = await readReadiness(context)
  const { history, keeper, oracle, paused, rpc, timelock } = report
  const unannounced = timelock.unannounced.length
  const evaluatedAt = keeper.lastEvaluation?.at
  return [
    gauge('ats_ready', {}, blocking.length === 0 ? 1 : 0),
    gauge('ats_readiness_problems', {}, blocking.length + partial.length),
    gauge('ats_chain_head_block', {}, Number(block.number)),
    gauge('ats_chain_head_age_seconds', {}, rpc.lagSeconds),
    gauge('ats_chain_halted', {}, isHalted ? 1 : 0),
    gauge('ats_clock_skew_seconds', {}, rpc.clockSkewSeconds),
    ...nodes.map(({ node, problem }) => gauge('ats_node_disagrees', { node }, problem === undefined ? 0 : 1)),
    gauge('ats_stale_prices', {}, oracle.stale.length),
    gauge('ats_restricted_tokens', {}, report.restricted.length),
    ...(oracle.secondsLeft === null ? [] : [gauge('ats_price_seconds_left', {}, oracle.secondsLeft)]),
    gauge('ats_timelock_operations', { announced: 'yes' }, timelock.pending - unannounced),
    gauge('ats_timelock_operations', { announced: 'no' }, unannounced),
    ...watched.map(({ name, transactions }) =>
      gauge('ats_watched_account_transactions', { account: name }, transactions),
    ),
    gauge('ats_index_complete', {}, history.cursor === null || history.pendingMigrations?.length !== 0 ? 0 : 1),
    gauge('ats_paused_vaults', {}, paused.vaults.length),
    ...(history.lagBlocks === null ? [] : [gauge('ats_index_lag_blocks', {}, history.lagBlocks)]),
    ...(history.lagSeconds === null ? [] : [gauge('ats_index_lag_seconds', {}, history.lagSeconds)]),
    ...(evaluatedAt === undefined
      ? []
      : [gauge('ats_keeper_lag_seconds', {}, Math.max(0, Number(block.timestamp) - Number(evaluatedAt)))]),
  ]
}

async function keeperGauges(
  context: Context,
  lanes: (statuses: readonly LaneStatus[]) => GaugeSample[],
): Promise<GaugeSample[]> {
  const status: KeeperStatus | undefined = await context.keeper?.status(MAX_NODE_WAIT_MS)
  if (status === undefined) return []
  return [
    gauge('ats_keeper_open_positions', {}, status.openPositions),
    gauge('ats_keeper_pending_exits', {}, status.pendingExits),
    gauge('ats_keeper_open_orders', {}, status.openOrders),
    gauge('ats_keeper_pending_orders', {}, status.pendingOrders),
    ...lanes(status.lanes),
  ]
}

async function streamGauges(context: Context): Promise<GaugeSample[]> {
  const { streams, isFailing, webhooks } = await context.live.status()
  return [
    gauge('ats_event_streams', {}, streams),
    gauge('ats_event_streams_failing', {}, isFailing ? 1 : 0),
    gauge('ats_webhooks', {}, webhooks.active),
    gauge('ats_webhooks_failing', {}, webhooks.failing),
  ]
}

function laneGauges(
  { address, pending, oldestPendingSeconds, depth, balanceWei, pausedFor, gasPriceRatio }: LaneStatus,
  names: ReturnType<typeof accountNames>,
): GaugeSample[] {
  const account = names.get(address) ?? 'unknown'
  return [
    gauge('ats_lane_pending_transactions', { account }, pending),
    gauge('ats_lane_oldest_pending_seconds', { account }, oldestPendingSeconds),
    gauge('ats_lane_capacity', { account }, depth),
    ...PAUSE_REASONS.map(reason => gauge('ats_lane_paused', { account, reason }, pausedFor === reason ? 1 : 0)),
    ...(gasPriceRatio === undefined ? [] : [gauge('ats_gas_price_ratio', { account }, gasPriceRatio)]),
    ...(balanceWei === undefined ? [] : [gauge('ats_account_balance_ether', { account }, Number(balanceWei) / 1e18)]),
  ]
}
