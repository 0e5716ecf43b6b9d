import type { Address } from 'viem'
import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'
import { priceNeedOf, sourceOf, type Urgency } from './carried-prices.ts'
import type { Chain } from './configured-chain.ts'
import { mandateVault } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/**
 * Returns the chain with the newest prices of tokens: what is read from it is what a transaction finds that brings them
 * along. Throws PRICE_REPORTS_UNAVAILABLE.
 */
export async function withNewestPrices<C extends Chain>(
  chain: C,
  tokens: readonly Address[],
  urgency?: Urgency,
): Promise<C> {
  const { reports } = chain
  await knowSources(chain)
  const need = priceNeedOf(chain, tokens)
  if (need === undefined) return chain
  if (reports === undefined) throw refuse('PRICE_REPORTS_UNAVAILABLE', { problem: 'nothing reads them here' })
  return { ...chain, carried: await reports.carriedFor(need, urgency) }
}

/** A failure that goes on is logged once. */
const FAILURE_LOG_MS = 60_000

/** How old the known sources may be where no other read has renewed them. */
const MAX_SOURCES_AGE_MS = 60_000

/** Reads where prices come from if the isolate does not know that, where there may be reports. */
async function knowSources(chain: Chain): Promise<void> {
  const { reports, memory } = chain
  const isOld = Date.now() - memory.priceSources.readAt > MAX_SOURCES_AGE_MS
  if (reports?.isConfigured && isOld) await readTree(chain, {})
}

/**
 * Returns the chain as `withNewestPrices` does, or with the prices that the oracle holds while the provider of reports
 * fails: those become stale, and nothing happens at a stale price.
 */
export const withHeldOrNewestPrices = <C extends Chain>(chain: C, tokens: readonly Address[]): Promise<C> =>
  withNewestPrices(chain, tokens).catch(error => {
    const { memory } = chain
    if (Date.now() - (memory.reportFailureAt ?? 0) > FAILURE_LOG_MS) logFailure('price reports', error)
    memory.reportFailureAt = Date.now()
    return chain
  })

/**
 * Reads at the prices that the oracle holds, and again at the newest ones if some are stale only because no trade has
 * brought them along.
 */
export async function readAtNewestIfStale<C extends Chain, Value>(
  chain: C,
  read: (chain: C) => Promise<Value>,
  staleTokensIn: (value: Value) => readonly Address[],
): Promise<Value> {
  const held = await read(chain)
  const newest = await withHeldOrNewestPrices(chain, staleTokensIn(held))
  return newest === chain ? held : read(newest)
}

/**
 * Returns the tokens that a vault holds and whose prices prove themselves: a call that values its shares brings them
 * along. Reads nothing where the updater posts every price.
 */
export async function provenTokensOf(chain: Chain, vault: Address): Promise<Address[]> {
  await knowSources(chain)
  const proven = [...chain.memory.priceSources.byToken.keys()].filter(
    token => sourceOf(chain, token).kind !== 'updater',
  )
  if (proven.length === 0) return []
  const { values } = await readTree(
    chain,
    proven.map(token => ({ token, held: optional(call(mandateVault(vault), 'tokenLedger', [token])) })),
  )
  return values.flatMap(({ token, held = 0n }) => (held > 0n ? [token] : []))
}
