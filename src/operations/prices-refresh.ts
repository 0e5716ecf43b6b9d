import { timingSafeEqual } from 'node:crypto'
import { keccak256, sha256, stringToBytes } from 'viem'
import { z } from 'zod'
import { type Market, readMarket, type Token } from '../chain/market.ts'
import { encodePost, readPost } from '../chain/oracle-post.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors.ts'
import { presentOracleQuote, priceRefresh } from '../resources/token.ts'
import { defineOperation } from './operation.ts'
import { mine } from './submission.ts'

/** A price that has not moved is posted again once the held observation is this much older. */
const RENEW_AFTER_SECONDS = 60n
const DEADLINE_SECONDS = 300n

export const refreshPrices = defineOperation(
  {
    id: 'refreshPrices',
    tool: 'svc_refresh_prices',
    method: 'post',
    path: '/prices/refresh',
    tag: 'Prices',
    summary: 'Refresh the oracle from market data',
    description:
      'Posts the prices of the market-data provider in one transaction. A price beyond the deviation bound of the oracle, or one that is not newer than the held one, is skipped and named. Needs the refresh secret as bearer token where one is configured.',
    security: 'bearer',
    body: z.object({
      symbols: z
        .array(z.string().min(1).max(64))
        .min(1)
        .max(200)
        .optional()
        .meta({ description: 'Symbols to refresh; all tokens when absent', example: ['NVDA', 'AAPL'] }),
      force: z
        .boolean()
        .default(false)
        .meta({ description: 'Also post a price that has not moved within the last minute' }),
    }),
    bodyIsOptional: true,
    status: 200,
    output: priceRefresh,
    errors: [400, 401, 500, 502, 503],
  },
  async (context, { symbols, force }) => {
    assertMayRefresh(context)
    const { chain, market: provider, updater } = context
    const { block, market } = await readMarket(chain)
    const asked = symbols && new Set(symbols)
    for (const symbol of asked ?? [])
      if (!market.tokens.some(token => token.symbol === symbol)) throw refuse('UNKNOWN_SYMBOL', { symbol })
    const tokens = market.tokens.filter(({ symbol }) => asked === undefined || asked.has(symbol))

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
  },
)

type Answer = z.input<typeof priceRefresh>

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

/** Throws UNAUTHORIZED unless the secret that is configured came with the request; compared in constant time. */
function assertMayRefresh({ config: { priceRefreshSecret: secret }, bearer = '' }: Context) {
  if (secret === undefined) return
  const [expected, given] = [secret, bearer].map(text => sha256(stringToBytes(text), 'bytes'))
  if (expected === undefined || given === undefined || !timingSafeEqual(expected, given)) throw refuse('UNAUTHORIZED')
}
