import type { Hex } from 'viem'
import { type Chain, createChain, type TradingChain } from './chain/chain.ts'
import type { Config } from './config.ts'
import { refuse } from './errors/catalogue.ts'
import { createExecutor, type Executor } from './executor/client.ts'
import { createJournals, type Journals } from './executor/find-intent.ts'
import type { RelayRequest } from './executor/intent.ts'
import { createHistory, type History } from './history/client.ts'
import { createKeeper, type Keeper } from './keeper/client.ts'
import { createEventStreamsClient, type EventStreamsClient } from './live/client.ts'
import { createPayments, type Payments } from './payments/client.ts'
import { createPriceProvider } from './price-providers/create-price-provider.ts'
import type { PriceProvider } from './price-providers/price-provider.ts'
import { createReadCache, type ReadCache } from './read-cache.ts'

/** What an operation may use. A getter throws the refusal of the capability that the deployment lacks. */
export type Context = {
  readonly config: Config
  /** Responses about the newest block, cached in this isolate. */
  readonly readCache: ReadCache
  readonly chain: Chain
  /** The chain with its trading contracts. */
  readonly trading: TradingChain
  /** Relays trade intents. */
  readonly executor: Executor
  /** Relays registrations and identity links. */
  readonly relayer: Executor
  /** Posts prices to the oracle. */
  readonly updater: Executor
  /** What became of intents and transactions that went through an executor; empty where there is none. */
  readonly journals: Journals
  /** Fires exits on its own; undefined where the deployment leaves that to others. */
  readonly keeper: Keeper | undefined
  /** Reads past trades, positions, agents and samples. */
  readonly history: History
  /** Opens streams of trades, intents and alerts. */
  readonly live: EventStreamsClient
  /** Where market prices come from. */
  readonly priceProvider: PriceProvider
  /** Takes the registration fee; undefined where registrations are not paid for over x402. */
  readonly payments: Payments | undefined
  /** The x402 payment that came with the call, as decoded JSON. */
  readonly payment?: unknown
  /** The bearer token that came with the request. */
  readonly bearer?: string
}

type Bindings = Pick<
  Env,
  'EXECUTOR_LANE' | 'KEEPER' | 'PAYMENT_LEDGER' | 'HISTORY' | 'HISTORY_INDEXER' | 'EVENT_STREAMS'
>

export function createContext(config: Config, env: Bindings): Context {
  const chain = config.chain && createChain(config.chain, config.trading)
  const readCache = createReadCache(config.readLeaseMs)
  const relaying = (keys: readonly Hex[]): Executor => {
    const executor = createExecutor(env.EXECUTOR_LANE, keys, config)
    const relay = async (message: RelayRequest) => {
      const outcome = await executor.relay(message)
      readCache.clear()
      return outcome
    }
    return { ...executor, relay }
  }
  return {
    config,
    readCache,
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
      return relaying(config.executorKeys)
    },
    get relayer() {
      if (config.relayerKey === undefined) throw refuse('RELAYER_NOT_CONFIGURED')
      return relaying([config.relayerKey])
    },
    get updater() {
      if (config.oracleUpdaterKey === undefined) throw refuse('PRICE_UPDATER_NOT_CONFIGURED')
      return relaying([config.oracleUpdaterKey])
    },
    get journals() {
      const { executorKeys, relayerKey, oracleUpdaterKey, keeper } = config
      return createJournals(env.EXECUTOR_LANE, {
        relaying: [...executorKeys, relayerKey ?? []].flat(),
        own: [oracleUpdaterKey ?? [], keeper?.key ?? []].flat(),
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
      return createEventStreamsClient(env.EVENT_STREAMS, this.trading)
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
  }
}

const BEARER = /^Bearer +([^\s]+) *$/i

/** The context of a request that carries an Authorization header; everything else is the given context's. */
export function withAuthorization(context: Context, header: string | null | undefined): Context {
  const [, token] = BEARER.exec(header ?? '') ?? []
  return token === undefined ? context : Object.create(context, { bearer: { value: token } })
}

/** The context of a call that carries a payment; everything else is the given context's. */
export const withPayment = (context: Context, payment: unknown): Context =>
  payment === undefined ? context : Object.create(context, { payment: { value: payment } })
