import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { logEvent } from '../log.ts'
import { postOraclePrices } from './post-oracle-prices.ts'

/** Refreshes prices on the cron trigger, if the deployment is configured for it. Logs a failure instead of throwing it. */
export async function refreshPricesOnSchedule(context: Context): Promise<void> {
  const { chain, priceProvider, oracleUpdaterKey, respectSessions } = context.config
  if (chain === undefined || priceProvider === undefined || oracleUpdaterKey === undefined) return
  try {
    await postOraclePrices(context, {}, { onlyOpenMarkets: respectSessions })
  } catch (error) {
    const { code, details } = error instanceof Refusal ? error.body : { code: 'INTERNAL', details: undefined }
    logEvent('price refresh failed', { code, ...(details?.problem !== undefined && { problem: `${details.problem}` }) })
  }
}
