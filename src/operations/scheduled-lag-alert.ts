import { readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { logEvent, logFailure } from '../log.ts'

const MAX_CHAIN_LAG_SECONDS = 120
const MAX_INDEX_LAG_SECONDS = 120

/**
 * Logs on the cron trigger how far the newest block is behind the clock, and the index behind that block, if that is far. `now` is
 * in milliseconds.
 */
export async function logLagOnSchedule(context: Context, now = Date.now()): Promise<void> {
  if (context.config.chain === undefined) return
  try {
    const [reach, { block }] = [await context.history.cursor(), await readTree(context.chain, {})]
    const chainLag = Math.floor(now / 1000) - Number(block.timestamp)
    if (chainLag > MAX_CHAIN_LAG_SECONDS) logEvent('chain lag', { seconds: chainLag, blockNumber: `${block.number}` })
    const indexLag = reach === undefined ? undefined : Number(block.timestamp) - reach.timestamp
    if (indexLag !== undefined && indexLag > MAX_INDEX_LAG_SECONDS) logEvent('index lag', { seconds: indexLag })
  } catch (error) {
    logFailure('lag unknown', error)
  }
}
