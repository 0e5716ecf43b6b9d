import { keccak256 } from 'viem'
import type { z } from 'zod'
import { marketHours } from '../catalog/market-hours.ts'
import { type Market, readMarket, type Token } from '../chain/listings.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { Refusal } from '../errors/refusal.ts'
import { logEvent } from '../log.ts'
import { encodePost, readPost } from '../protocol/price-post.ts'
import { presentOracleQuote, type priceRefresh } from '../resources/token.ts'
import { mine } from './relay-intent.ts'

/** A price that has not moved is posted again once the held observation is this much older. */
const RENEW_AFTER_SECONDS = 60n
const DEADLINE_SECONDS = 300n

type Answer = z.input<typeof priceRefresh>
type Asked = {
  /** All tokens when absent. */
  symbols?: readonly string[] | undefined
  /** Also posts what has not moved. */
  force?: boolean
  /** Leaves out tokens whose market is closed: its feed is silent, and has nothing new to say. */
  onlyOpen?: boolean
}

/**
 * Posts what the market-data provider observes in one transaction, and says of the rest why not. Throws the refusal of a
 * capability that is missing, PRICE_PROVIDER_FAILED, and what a submission is refused with.
 */
export async function refresh(
  { chain, priceProvider: provider, updater }: Context,
  { symbols, force = false, onlyOpen = false }: Asked,
): Promise<Answer> {
  const { block, market } = await readMarket(chain)
  const asked = symbols && new Set(symbols)
  for (const symbol of asked ?? [])
    if (!market.tokens.some(token => token.symbol === symbol)) throw refuse('UNKNOWN_SYMBOL', { symbol })
  const isOpen = (symbol: string) => marketHours(symbol, Number(block.timestamp)).session !== 'closed'
  const tokens = market.tokens.filter(
    ({ symbol }) => (asked === undefined || asked.has(symbol)) && (!onlyOpen || isOpen(symbol)),
  )
  if (tokens.length === 0) return answer(provider.name, [], [], market, tokens)

  const observations = await provider.observe(tokens.map(({ symbol }) => symbol))
  const skipped: Answer['skipped'] = []
  const posts = tokens.flatMap(({ symbol, address }, index) => {
    const observation = observations[index]
    if (observation === undefined || 'reason' in observation) {
      skipped.push({ symbol, reason: observation?.reason ?? 'notKnown' })
      return []
    }
    const { price, observedAt } = observation
    const held = market.quoteIn(address)
    const hasNotMoved = held.price === price && observedAt < held.updatedAt + RENEW_AFTER_SECONDS
    const reason = observedAt <= held.updatedAt ? 'notNewer' : hasNotMoved && !force ? 'unchanged' : undefined
    if (reason) skipped.push({ symbol, reason })
    return reason ? [] : [{ symbol, token: address, price, observedAt }]
  })
  if (tokens.length > 0 && observations.every(observation => 'reason' in observation))
    throw refuse('PRICE_PROVIDER_FAILED', {
      provider: provider.name,
      problem: 'none of its quotes can be used',
      skipped,
    })
  if (posts.length === 0) return answer(provider.name, [], skipped, market, tokens)

  const data = encodePost(posts)
  const digest = keccak256(data)
  const { hash, logs } = await mine(updater, {
    digest,
    kind: 'prices',
    group: 'prices',
    groupNonce: digest,
    deadline: block.timestamp + DEADLINE_SECONDS,
    call: { to: chain.contracts.PriceOracle, data },
  })
  const fates = readPost(chain.contracts.PriceOracle, logs)
  const updated = posts.filter(({ token }) => fates.has(token) && fates.get(token) === undefined)
  for (const { symbol, token } of posts) {
    const reason = fates.get(token)
    if (reason) skipped.push({ symbol, reason })
  }
  const after = await readMarket(chain)
  const names = updated.map(({ symbol }) => symbol)
  return { ...answer(provider.name, names, skipped, after.market, tokens), transactionHash: hash }
}

const answer = (
  provider: string,
  updated: string[],
  skipped: Answer['skipped'],
  market: Market,
  tokens: readonly Token[],
): Answer => ({
  updated,
  skipped,
  prices: Object.fromEntries(
    tokens.map(token => [token.symbol, presentOracleQuote(token, market.quoteIn(token.address))]),
  ),
  provider,
})

/** What the cron trigger does: a refresh where one is configured. A failure is logged and leaves the rest of the schedule. */
export async function refreshOnSchedule(context: Context): Promise<void> {
  const { chain, priceProvider, oracleUpdaterKey, respectSessions } = context.config
  if (chain === undefined || priceProvider === undefined || oracleUpdaterKey === undefined) return
  try {
    await refresh(context, { onlyOpen: respectSessions })
  } catch (error) {
    const { code, details } = error instanceof Refusal ? error.body : { code: 'INTERNAL', details: undefined }
    logEvent('price refresh failed', { code, ...(details?.problem !== undefined && { problem: `${details.problem}` }) })
  }
}
