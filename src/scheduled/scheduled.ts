import type { Block } from '../chain/configured-chain.ts'
import { readTree } from '../chain/read-tree.ts'
import { clockSkewSeconds } from '../clock.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { logEvent, logFailure } from '../log.ts'
import { CHECK_SECONDS } from '../metrics/object.ts'
import { postOraclePrices } from '../operations/prices-refresh.ts'
import { MAX_INDEX_LAG_SECONDS, readReadiness } from '../readiness/read-readiness.ts'
import { checkpointSharePrices } from './checkpoint-share-prices.ts'
import { postFeedback } from './feedback.ts'
import { feedCalls, observeGap } from './observe-gap.ts'
import { queueCalls, settleRequests } from './settle-requests.ts'

const MAX_CHAIN_LAG_SECONDS = 120
/** The minute of each hour in which share prices are recorded. */
const CHECKPOINT_MINUTE = 17

/**
 * Runs the parts of the cron trigger in order, at `now` (milliseconds). A part that fails is logged and does not stop
 * the others.
 */
export async function runSchedule(context: Context, now = Date.now()): Promise<void> {
  const isTrading = context.config.chain !== undefined && context.config.trading !== undefined
  await refreshPrices(context)
  const seen = isTrading
    ? await look(context).catch(error => logFailure('chain not read', error) ?? undefined)
    : undefined
  if (seen) {
    const { block, values } = seen
    await observeGap(context, { block, values: values.feed }, now).catch(error => logFailure('gap not observed', error))
    await settleRequests(context, values.queues).catch(error => logFailure('requests failure', error))
  }
  await logLag(context, Date.now(), seen?.block)
  const minute = Math.floor(now / 60_000)
  if (isTrading) await context.live.retryWebhookNotices(minute)
  if (isTrading) await context.live.watchForSubscribers()
  if (isTrading && minute % (CHECK_SECONDS / 60) === 0)
    await checkReadiness(context, now).catch(error => logFailure('readiness not recorded', error))
  await postFeedback(context).catch(error => logFailure('feedback failure', error))
  if (isTrading && new Date(now).getUTCMinutes() === CHECKPOINT_MINUTE)
    await checkpointSharePrices(context).catch(error => logFailure('share price failure', error))
}

/** Reads what the parts look at every minute, with one call. Throws CHAIN_UNREACHABLE. */
const look = ({ chain }: Context) => readTree(chain, { queues: queueCalls(chain), feed: feedCalls(chain) })

/**
 * Records whether trading is possible. A state that cannot be read counts as not ready. Throws if it cannot be
 * recorded.
 */
async function checkReadiness(context: Context, now: number): Promise<void> {
  const problems = await readReadiness(context).then(
    ({ blocking }) => blocking,
    error => [problemOf(error)],
  )
  await context.metrics.addCheck({ at: Math.floor(now / 1000), version: context.config.version, problems })
}

const problemOf = (error: unknown): string =>
  error instanceof Refusal ? `${error.body.details?.problem ?? error.body.error}` : 'the state could not be read'

/**
 * Logs how far the newest block is behind the clock, and the index behind that block, if that is far. `now` is
 * in milliseconds. It reads the newest block unless the caller has.
 */
export async function logLag(context: Context, now = Date.now(), known?: Block): Promise<void> {
  if (context.config.chain === undefined) return
  try {
    const reach = await context.history.cursor()
    const block = known ?? (await readTree(context.chain, {})).block
    const chainLag = Math.floor(now / 1000) - clockSkewSeconds(block) - Number(block.timestamp)
    if (chainLag > MAX_CHAIN_LAG_SECONDS && !context.config.chain.makesBlocksOnDemand)
      logEvent('chain lag', { seconds: chainLag, blockNumber: `${block.number}` })
    const indexLag = reach === undefined ? undefined : Number(block.timestamp) - reach.timestamp
    if (indexLag !== undefined && indexLag > MAX_INDEX_LAG_SECONDS) logEvent('index lag', { seconds: indexLag })
  } catch (error) {
    logFailure('lag unknown', error)
  }
}

/** Refreshes prices, if the deployment is configured for it. Logs a failure instead of throwing it. */
export async function refreshPrices(context: Context): Promise<void> {
  const { chain, priceProvider, oracleUpdaterKey, respectSessions } = context.config
  if (chain === undefined || priceProvider === undefined || oracleUpdaterKey === undefined) return
  try {
    await postOraclePrices(context, {}, { onlyOpenMarkets: respectSessions })
  } catch (error) {
    const { code, details } = error instanceof Refusal ? error.body : { code: 'INTERNAL', details: undefined }
    logEvent('price refresh failed', { code, ...(details?.problem !== undefined && { problem: `${details.problem}` }) })
  }
}
