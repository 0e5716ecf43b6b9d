import { timingSafeEqual } from 'node:crypto'
import { sha256, stringToBytes } from 'viem'
import { z } from 'zod'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { priceRefresh } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'
import { refresh } from './refresh-job.ts'

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
    return refresh(context, { symbols, force })
  },
)

/** Throws UNAUTHORIZED unless the secret that is configured came with the request; compared in constant time. */
function assertMayRefresh({ config: { priceRefreshSecret: secret }, bearer = '' }: Context) {
  if (secret === undefined) return
  const [expected, given] = [secret, bearer].map(text => sha256(stringToBytes(text), 'bytes'))
  if (expected === undefined || given === undefined || !timingSafeEqual(expected, given)) throw refuse('UNAUTHORIZED')
}
