import { env } from 'cloudflare:workers'
import type { Hex } from 'viem'
import { createSharedReads } from './chain/combine-concurrent-reads.ts'
import { type Chain, createChain, type TradingChain } from './chain/configured-chain.ts'
import { createMinBlocks } from './chain/min-blocks.ts'
import { createReadCache, type ReadCache } from './chain/read-cache.ts'
import { type Config, parseConfig } from './config/config.ts'
import { refuse } from './errors/refuse.ts'
import { createExecutor, createJournals, type Executor, type Journals } from './executor/client.ts'
import { createHistory, type HistoryContext } from './history/client.ts'
import { readAncestorOf } from './history/tables/cursor.ts'
import { createIntakeSwitches, type IntakeSwitches } from './intake-switches/client.ts'
import { createKeeper, type Keeper } from './keeper/client.ts'
import { createRateLimits, type RateLimiters, type RateLimits } from './limits/rate-limits.ts'
import { createEventStreamsClient, type EventStreamsClient } from './live/client.ts'
import { createMetrics, type Metrics } from './metrics/client.ts'
import { createPayments, type Payments } from './payments/client.ts'
import { createPriceProvider } from './price-providers/create-price-provider.ts'
import { createPriceReports } from './price-providers/data-streams.ts'
import type { PriceProvider } from './price-providers/price-provider.ts'
import { createWebhooks, type Webhooks } from './webhooks/client.ts'

/**
 * The services of a deployment, the same for every call. A getter throws a refusal if the deployment lacks the
 * capability.
 */
export type Context = HistoryContext & {
  /** The last readiness result, cached because it costs many requests. */
  readonly readinessCache: ReadCache
  /** The last findings about the deployment, cached because they change only with the contracts. */
  readonly deploymentCache: ReadCache
  /** Returns this context for a call that must not read a block before this one. */
  notBefore(minBlock: bigint | undefined): Context
  /** Relays trade intents. */
  readonly executor: Executor
  /** Relays registrations and identity links. */
  readonly relayer: Executor
  /** Posts prices to the oracle. */
  readonly updater: Executor
  /** Posts weekly results; undefined if the deployment has no reporter. */
  readonly reporter: Executor | undefined
  /** Looks up intents and transactions in the journals of all lanes; empty if the deployment has no accounts. */
  readonly journals: Journals
  /** Fires exits; undefined if the deployment runs no keeper. */
  readonly keeper: Keeper | undefined
  /** Which kinds of intake the operator has closed. */
  readonly intakeSwitches: IntakeSwitches
  /** Opens streams of trades, intents and alerts. */
  readonly live: EventStreamsClient
  /** Creates and changes webhooks. */
  readonly webhooks: Webhooks
  /** Observes market prices. */
  readonly priceProvider: PriceProvider
  /** Collects the registration fee; undefined if fees are not paid over x402. */
  readonly payments: Payments | undefined
  readonly rateLimits: RateLimits
  /** The metrics of all isolates. */
  readonly metrics: Metrics
}

type ContextBindings = Pick<
  Env,
  | 'EXECUTOR_LANE'
  | 'INTAKE_SWITCHES'
  | 'KEEPER'
  | 'PAYMENT_LEDGER'
  | 'HISTORY'
  | 'HISTORY_INDEXER'
  | 'EVENT_STREAMS'
  | 'EVENT_STREAM_SHARDS'
  | 'WEBHOOKS'
  | 'METRIC_TOTALS'
> & {
  /** The dataset of Workers Analytics Engine, where the deployment has one. */
  METRICS?: AnalyticsEngineDataset
}

/** How much of its lease a read has lived when one request reads it again. */
const RENEWED_PART_OF_LEASE = 0.75
/** A stranger who polls in a loop causes at most one read of the state in this time. */
const READINESS_LEASE_MS = 2_000
const DEPLOYMENT_LEASE_MS = 60_000
/**
 * How long a block that was shown counts. A development chain may restart at any time, and reaches the block much later
 * then.
 */
const SHOWN_BLOCK_MEMORY_MS = 600_000
const SHOWN_BLOCK_MEMORY_IN_DEVELOPMENT_MS = 10_000

/** Creates the context of a deployment. Nothing is connected before it is used. */
export function createContext(config: Config, env: ContextBindings, limiters?: RateLimiters): Context {
  const newestChain = config.chain && {
    ...createChain(config.chain, config.trading, {
      reports: createPriceReports(config.dataStreams, createSharedReads),
    }),
    ancestorOf: (block: bigint) => readAncestorOf(env.HISTORY, block),
  }
  const readCache = createReadCache(config.readLeaseMs, RENEWED_PART_OF_LEASE * config.readLeaseMs)
  const readinessCache = createReadCache(config.readLeaseMs === 0 ? 0 : READINESS_LEASE_MS)
  const deploymentCache = createReadCache(config.readLeaseMs === 0 ? 0 : DEPLOYMENT_LEASE_MS)
  const executorOf = (keys: readonly Hex[]): Executor => createExecutor(env.EXECUTOR_LANE, keys, config)
  const shared = {
    config,
    readCache,
    readinessCache,
    deploymentCache,
    minBlocks: createMinBlocks(
      config.chain?.isDevelopment ? SHOWN_BLOCK_MEMORY_IN_DEVELOPMENT_MS : SHOWN_BLOCK_MEMORY_MS,
    ),
    rateLimits: createRateLimits(config.requestBudgets, limiters),
    intakeSwitches: createIntakeSwitches(env.INTAKE_SWITCHES),
    metrics: createMetrics(env, config.readLeaseMs > 0),
  }
  /** The capabilities over a chain whose reads do not go back behind its `minBlock`. */
  const contextOver = (chain: Chain | undefined): Context => ({
    ...shared,
    notBefore: minBlock => contextOver(chain && { ...chain, minBlock }),
    get chain() {
      if (chain === undefined) throw refuse('CHAIN_NOT_CONFIGURED')
      return chain
    },
    get trading() {
      if (chain?.trading === undefined) throw refuse('TRADING_NOT_CONFIGURED')
      return chain as TradingChain
    },
    get executor() {
      if (chain?.trading === undefined) throw refuse('TRADING_NOT_CONFIGURED')
      if (config.executorKeys.length === 0) throw refuse('EXECUTOR_NOT_CONFIGURED')
      return executorOf(config.executorKeys)
    },
    get relayer() {
      if (config.relayerKey === undefined) throw refuse('RELAYER_NOT_CONFIGURED')
      return executorOf([config.relayerKey])
    },
    get updater() {
      if (config.oracleUpdaterKey === undefined) throw refuse('PRICE_UPDATER_NOT_CONFIGURED')
      return executorOf([config.oracleUpdaterKey])
    },
    get reporter() {
      return config.reporterKey && executorOf([config.reporterKey])
    },
    get journals() {
      const { executorKeys, relayerKey, oracleUpdaterKey, keeper, reporterKey } = config
      return createJournals(env.EXECUTOR_LANE, {
        relaying: [...executorKeys, relayerKey ?? []].flat(),
        own: [oracleUpdaterKey ?? [], keeper?.key ?? [], reporterKey ?? []].flat(),
      })
    },
    get keeper() {
      if (chain?.trading === undefined || config.keeper === undefined) return undefined
      return createKeeper(env.KEEPER, chain as TradingChain)
    },
    get history() {
      if (chain === undefined) throw refuse('CHAIN_NOT_CONFIGURED')
      return createHistory(env, chain)
    },
    get live() {
      return createEventStreamsClient(env, this.trading, config)
    },
    get webhooks() {
      return createWebhooks(env, this.trading, config)
    },
    get priceProvider() {
      if (config.priceProvider === undefined) throw refuse('PRICE_PROVIDER_NOT_CONFIGURED')
      return createPriceProvider(config.priceProvider, this.chain)
    },
    get payments() {
      if (config.payment === undefined) return undefined
      if (config.payment === 'unusable') throw refuse('PAYMENT_NOT_CONFIGURED')
      return createPayments(config.payment, env.PAYMENT_LEDGER, `${config.baseUrl ?? ''}/agents/register`)
    },
  })
  return contextOver(newestChain)
}

let ofDeployment: Context | undefined
/** Returns the context of the deployment, which the requests and objects of an isolate share. */
export function serviceContext(): Context {
  ofDeployment ??= createContext(parseConfig({ ...env }), env, { ...env } as RateLimiters)
  return ofDeployment
}
