import { z } from 'zod'
import type { Call } from '../call.ts'
import { refuse } from '../errors/refuse.ts'
import { intakeRefusal } from '../intents/intake.ts'
import { priceRefresh } from '../resources/price.ts'
import { hasBearer } from './bearer-check.ts'
import { defineOperation } from './define-operation.ts'
import { assertKnownSymbols, postOraclePrices, skipRefresh } from './post-oracle-prices.ts'

export const refreshPrices = defineOperation(
  {
    id: 'refreshPrices',
    tool: {
      name: 'svc_refresh_prices',
      description:
        'Posts newer market prices to the oracle; use it when svc_get_prices shows stale. skipped lists what was not posted and why. Some deployments require a bearer token. Example: {"symbols":["NVDA"]}',
    },
    method: 'post',
    path: '/prices/refresh',
    tag: 'Prices',
    summary: 'Refresh oracle prices',
    description:
      "Posts the market-data provider's prices to the oracle in one transaction. A price outside the oracle's deviation bound, or not newer than the current one, is skipped and listed. Requires the refresh secret as a bearer token if the deployment has one. Without a secret all callers share one refresh per interval: until the next one the response has the current prices, and on a chain with real money refreshes are disabled.",
    security: 'refresh',
    body: z.object({
      symbols: z
        .array(z.string().min(1).max(64))
        .min(1)
        .max(200)
        .optional()
        .meta({ description: 'Symbols to refresh; default: all tokens', example: ['NVDA', 'AAPL'] }),
      force: z
        .boolean()
        .default(false)
        .meta({ description: 'Also post a price that has not changed within the last minute; requires the secret' }),
    }),
    bodyIsOptional: true,
    cache: 'none',
    status: 200,
    output: priceRefresh,
    errors: [401, 502, 503],
    statusDescriptions: { 502: 'The market-data provider or the chain could not be reached' },
  },
  async (context, { symbols, force }, call) => {
    const { priceRefresh } = context.config
    if (priceRefresh === undefined) throw refuse('PRICE_REFRESH_DISABLED')
    if ('secret' in priceRefresh) assertHasSecret(call, priceRefresh)
    const closed = await intakeRefusal(context, 'priceRefreshes')
    if (closed) throw closed
    if ('secret' in priceRefresh) {
      return postOraclePrices(context, call, { symbols, force })
    }
    if (force) throw refuse('UNAUTHORIZED')
    // Before the refresh that everybody shares is taken.
    await assertKnownSymbols(context, symbols)
    if (!(await context.updater.takePriceRefresh(priceRefresh.intervalMs))) return skipRefresh(context, symbols)
    return postOraclePrices(context, call, { symbols })
  },
)

/** Throws UNAUTHORIZED unless the request carries the secret. */
function assertHasSecret({ bearer }: Call, { secret }: { secret: string }) {
  if (!hasBearer(secret, bearer)) throw refuse('UNAUTHORIZED')
}
