import { findSymbol } from '@agent-trading-service/protocol/find-symbol'
import { isMarketOpen } from '@agent-trading-service/protocol/market-hours'
import {
  isUnsettledPrice,
  type MultiplierChange,
  type TokenPrice,
  toTokenPrice,
} from '@agent-trading-service/protocol/price-basis'
import { decodePricePost, encodePricePost, type PricePost } from '@agent-trading-service/protocol/price-post-encoding'
import { type Address, type Hex, keccak256 } from 'viem'
import { z } from 'zod'
import { type Call, hasBearer, relayInTime } from '../call.ts'
import { encodePostPrices, NO_PRICES } from '../chain/carried-prices.ts'
import type { ChainContext } from '../chain/chain-context.ts'
import type { Block } from '../chain/configured-chain.ts'
import { withNewestPrices } from '../chain/newest-prices.ts'
import { readVaultsAndTokens, type Token, type VaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { RelayRequest } from '../executor/relay-types.ts'
import { intakeRefusal } from '../intents/intake.ts'
import { minedOrRefusal } from '../intents/mined-or-refusal.ts'
import type { PriceObservation } from '../price-providers/price-provider.ts'
import { presentOracleQuote, priceRefresh } from '../resources/price.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

export const refreshPrices = defineOperation(
  {
    id: 'refreshPrices',
    tool: {
      name: 'svc_refresh_prices',
      description:
        'Posts newer prices to the oracle; use it when svc_get_prices shows stale. skipped lists what was not posted and why. Some deployments require a bearer token. Example: {"symbols":["NVDA"]}',
    },
    method: 'post',
    path: '/prices/refresh',
    tag: 'Prices',
    summary: 'Refresh oracle prices',
    description:
      "Posts the market-data provider's prices to the oracle in one transaction. A price outside the oracle's deviation bound, or not newer than the current one, is skipped and listed. Of a token whose price comes with each trade, a report is posted only if `symbols` names it. Requires the refresh secret as a bearer token if the deployment has one. Without a secret all callers share one refresh per interval: until the next one the response has the current prices, and on a chain with real money refreshes are disabled.",
    security: 'refresh',
    body: z.object({
      symbols: z
        .array(z.string().min(1).max(64))
        .min(1)
        .max(200)
        .optional()
        .meta({ description: 'Symbols to refresh; default: all tokens', example: ['NVDA', 'AAPL'] }),
      force: z.boolean().default(false).describe('Also post unchanged prices; requires the secret'),
    }),
    bodyIsOptional: true,
    output: priceRefresh,
    errors: [401, 502, 503],
    statusDescriptions: { 502: 'The market-data provider or the chain could not be reached' },
  },
  async (context: Context, { symbols, force }, call) => {
    const { priceRefresh } = context.config
    if (priceRefresh === undefined) throw refuse('PRICE_REFRESH_DISABLED')
    if ('secret' in priceRefresh && !hasBearer(call, priceRefresh.secret)) throw refuse('UNAUTHORIZED')
    const closed = await intakeRefusal(context, 'priceRefreshes')
    if (closed) throw closed
    if ('secret' in priceRefresh) {
      return refreshAndRead(context, call, { symbols, force })
    }
    if (force) throw refuse('UNAUTHORIZED')
    // Before the refresh that everybody shares is taken.
    await assertKnownSymbols(context, symbols)
    if (!(await context.updater.takePriceRefresh(priceRefresh.intervalMs))) return skipRefresh(context, symbols)
    return refreshAndRead(context, call, { symbols })
  },
)

/** An unchanged price is posted again once its new observation is this much newer. */
const RENEW_AFTER_SECONDS = 60n
const DEADLINE_SECONDS = 300n

type PriceRefreshResponse = z.input<typeof priceRefresh>
type SkippedPrices = PriceRefreshResponse['skipped']

type PriceRefreshOptions = {
  /** Default: all tokens. */
  symbols?: readonly string[] | undefined
  /** Also posts unchanged prices. */
  force?: boolean
  /** Leaves out tokens whose market is closed, because their feed has nothing new. */
  onlyOpenMarkets?: boolean
}

/** Reads the tokens for refreshes that post nothing. Any caller may request one at any time, so they share one read. */
async function readShared({ chain, readCache }: ChainContext): Promise<VaultsAndTokens> {
  const { registered } = await readCache.getOrRead('skipped price refresh', async () => {
    const { block, registered } = await readVaultsAndTokens(chain)
    return { registered, asOf: presentAsOf(block) }
  })
  return registered
}

/** Throws UNKNOWN_SYMBOL unless every symbol has a token. */
async function assertKnownSymbols(context: Context, symbols: readonly string[] | undefined): Promise<void> {
  if (symbols) selectTokens(await readShared(context), symbols)
}

/** Returns the current prices with every symbol skipped, because someone has refreshed them recently. */
async function skipRefresh(context: Context, symbols: readonly string[] | undefined): Promise<PriceRefreshResponse> {
  const registered = await readShared(context)
  const tokens = selectTokens(registered, symbols)
  const skipped = tokens.map(({ symbol }) => ({ symbol, reason: 'refreshedRecently' as const }))
  return presentRefresh(context.priceProvider.name, [], skipped, registered, tokens)
}

/** Posts prices as `postOraclePrices`, and returns what was posted, what was skipped why, and the prices after that. */
async function refreshAndRead(
  context: Context,
  call: Call,
  options: PriceRefreshOptions,
): Promise<PriceRefreshResponse> {
  const posted = await postOraclePrices(context, call, options)
  const { tokens, updated, skipped, hash, ...before } = options.symbols
    ? await postProvenPrices(context, call, posted)
    : posted
  const { registered } = hash === undefined ? before : await readVaultsAndTokens(context.chain)
  const refresh = presentRefresh(context.priceProvider.name, updated, skipped, registered, tokens)
  return hash === undefined ? refresh : { ...refresh, transactionHash: hash }
}

/**
 * What a refresh posted, and what it skipped why. `registered` are the prices before, at `block`; `hash` is absent if
 * nothing was posted.
 */
type PricesPosted = {
  block: Block
  registered: VaultsAndTokens
  tokens: readonly Token[]
  updated: string[]
  skipped: SkippedPrices
  hash?: Hex
}

/**
 * Posts the market-data provider's prices to the oracle in one transaction. Throws UNKNOWN_SYMBOL,
 * PRICE_PROVIDER_FAILED, the refusal of a missing capability, and whatever the relay throws.
 */
export async function postOraclePrices(
  context: Context,
  call: Call,
  { symbols, force = false, onlyOpenMarkets = false }: PriceRefreshOptions,
): Promise<PricesPosted> {
  const { chain, priceProvider } = context
  const { block, registered } = await readVaultsAndTokens(chain)
  const selected = selectTokens(registered, symbols).filter(
    ({ session }) => !onlyOpenMarkets || isMarketOpen(session, Number(nowAt(block))),
  )
  const tokens = selected.filter(({ source }) => source.kind === 'updater')
  const skipped: SkippedPrices = selected.flatMap(({ symbol, source }) =>
    source.kind === 'updater' ? [] : [{ symbol, reason: 'otherSource' as const }],
  )
  if (tokens.length === 0) return { block, registered, tokens: selected, updated: [], skipped }

  const observations = await priceProvider.observe(tokens.map(({ symbol }) => symbol))
  const posts: (PricePost & { symbol: string })[] = []
  const settling = await settlingOf(context, registered, tokens)
  for (const [index, token] of tokens.entries()) {
    const { symbol, address } = token
    const observation = observations[index] ?? { reason: 'notKnown' as const }
    if ('reason' in observation) {
      skipped.push({ symbol, reason: observation.reason })
      continue
    }
    const current = registered.quoteIn(address)
    const { observedAt } = observation
    const price = tokenPriceOf(observation, token)
    const isUnchanged = current.price === price && observedAt < current.updatedAt + RENEW_AFTER_SECONDS
    if (observedAt <= current.updatedAt) skipped.push({ symbol, reason: 'notNewer' })
    else if (settling(token, observation)) skipped.push({ symbol, reason: 'unsettled' })
    else if (isUnchanged && !force) skipped.push({ symbol, reason: 'unchanged' })
    else posts.push({ symbol, token: address, price, observedAt })
  }
  if (observations.every(observation => 'reason' in observation))
    throw refuse('PRICE_PROVIDER_FAILED', {
      provider: priceProvider.name,
      problem: 'none of its quotes can be used',
      skipped,
    })
  if (posts.length === 0) return { block, registered, tokens: selected, updated: [], skipped }

  const { hash, logs } = await relayPost(context, call, block, encodePricePost(posts))
  const results = decodePricePost(chain.contracts.PriceOracle, logs)
  const updated: string[] = []
  for (const { symbol, token } of posts) {
    const reason = results.get(token)
    if (reason) skipped.push({ symbol, reason })
    else if (results.has(token)) updated.push(symbol)
  }
  return { block, registered, tokens: selected, updated, skipped, hash }
}

/**
 * Posts the prices of tokens that prove themselves, after those of the updater: for callers who send transactions of
 * their own, such as depositors. Throws PRICE_REPORTS_UNAVAILABLE.
 */
async function postProvenPrices(context: Context, call: Call, posted: PricesPosted): Promise<PricesPosted> {
  const { chain } = context
  const { block, tokens, skipped } = posted
  const proven = tokens.filter(({ source }) => source.kind !== 'updater')
  const carried = await withNewestPrices(
    chain,
    proven.map(({ address }) => address),
  ).then(priced => priced.carried ?? NO_PRICES)
  if (carried.reports.length + carried.feeds.length === 0) return posted
  const { hash, logs } = await relayPost(context, call, block, encodePostPrices(carried))
  const results = decodePricePost(chain.contracts.PriceOracle, logs)
  const updated = proven.filter(({ address }) => results.has(address) && results.get(address) === undefined)
  const others = skipped.filter(each => !proven.some(({ symbol }) => symbol === each.symbol))
  const notNewer = proven.filter(token => !updated.includes(token))
  return {
    ...posted,
    hash,
    updated: [...posted.updated, ...updated.map(({ symbol }) => symbol)],
    skipped: [...others, ...notNewer.map(({ symbol }) => ({ symbol, reason: 'notNewer' as const }))],
  }
}

/** Relays a call of the oracle that posts prices. */
async function relayPost(context: Context, call: Call, block: Block, data: Hex) {
  const digest = keccak256(data)
  const request: RelayRequest = {
    digest,
    kind: 'prices',
    by: { as: 'service', task: 'prices' },
    groupNonce: digest,
    deadline: nowAt(block) + DEADLINE_SECONDS,
    call: { to: context.chain.contracts.PriceOracle, data },
  }
  const outcome = await relayInTime({ ...call, progress: undefined }, context.updater, request)
  context.readCache.clear()
  return minedOrRefusal(request, outcome)
}

type Priced = Extract<PriceObservation, { basis: unknown }>

const tokenPriceOf = (observation: Priced, { multiplier }: Token): TokenPrice =>
  observation.basis === 'token' ? observation.price : toTokenPrice(observation.price, multiplier)

/**
 * Returns the function that says whether an observation is from before a token's corporate action, or from a market
 * that is on the other side of a split than the token. It asks the index only about tokens that have just changed.
 */
async function settlingOf({ history }: Context, { quoteIn }: VaultsAndTokens, tokens: readonly Token[]) {
  const changed = tokens.filter(({ address }) => quoteIn(address).unsettled).map(({ address }) => address)
  const lastChanges =
    changed.length === 0
      ? new Map<Address, MultiplierChange>()
      : await history.lastMultiplierChanges(changed).catch(() => new Map<Address, MultiplierChange>())
  return (token: Token, observation: Priced): boolean => {
    const { address, multiplier, isKnown, pending, changedAt } = token
    const { price: last, quoted, unsettled, at } = quoteIn(address)
    if (observation.observedAt < changedAt) return true
    if (observation.basis === 'token') return false
    if (!isKnown) return true
    if (!quoted) return false
    const candidate = tokenPriceOf(observation, token)
    const announced = pending && {
      oldMultiplier: multiplier,
      newMultiplier: pending.multiplier,
      effectiveAt: pending.effectiveAt,
    }
    if (announced && isUnsettledPrice(candidate, last, announced, at)) return true
    const lastChange = lastChanges.get(address)
    const isCurrent = lastChange?.effectiveAt === changedAt && lastChange.newMultiplier === multiplier
    return unsettled && isUnsettledPrice(candidate, last, isCurrent ? lastChange : undefined, at)
  }
}

/** Returns the tokens of the given symbols, or all tokens. Throws UNKNOWN_SYMBOL. */
function selectTokens({ tokens }: VaultsAndTokens, symbols: readonly string[] | undefined): readonly Token[] {
  const requested = symbols?.map(symbol => {
    const token = findSymbol(tokens, symbol)
    if (token === undefined) throw refuse('UNKNOWN_SYMBOL', { symbol })
    return token
  })
  return tokens.filter(token => requested === undefined || requested.includes(token))
}

const presentRefresh = (
  provider: string,
  updated: string[],
  skipped: SkippedPrices,
  registered: VaultsAndTokens,
  tokens: readonly Token[],
): PriceRefreshResponse => ({
  updated,
  skipped,
  prices: Object.fromEntries(
    tokens.map(token => [token.symbol, presentOracleQuote(token, registered.quoteIn(token.address))]),
  ),
  provider,
})
