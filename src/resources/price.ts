import { changeBps } from '@agent-trading-service/protocol/candles'
import { marketHours, reasonOfStalePrice, SESSIONS } from '@agent-trading-service/protocol/market-hours'
import { PRICE_SOURCES, type PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { ListingSession } from '@agent-trading-service/protocol/token-description'
import { type Address, formatUnits, parseUnits } from 'viem'
import { z } from 'zod'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import type { Config } from '../config/config.ts'
import { present } from './present.ts'
import { addressOut, asOf, hashOut, unixSeconds } from './primitives.ts'

export const marketSession = z
  .object({
    session: z
      .enum(SESSIONS)
      .describe(
        'In New York time: pre from 04:00, regular from 09:30, post from 16:00, overnight from 20:00. closed: weekend, holiday, or after an early close. continuous: always open',
      ),
    nextOpen: unixSeconds('When it opens next; null unless closed').nullable(),
  })
  .meta({ id: 'MarketSession', description: 'Whether the market behind the price is open' })

/** Presents the session of a market at a time in Unix seconds. */
export function presentMarketSession(calendar: ListingSession, at: bigint): z.input<typeof marketSession> {
  const { session, nextOpen } = marketHours(calendar, Number(at))
  return { session, nextOpen: nextOpen === undefined ? null : `${nextOpen}` }
}

/** Messages about a market: the remedy of a stale price, and the warning of a closed market with a fresh one. */
type MarketTexts = { remedy?: string; warning?: string }

/**
 * Returns the messages about a token whose market is closed at a time in Unix seconds, or open although its price may
 * be stale. There are none if the deployment ignores market sessions.
 */
export function marketTexts(
  { respectSessions }: Config,
  { symbol, session: calendar }: Pick<Token, 'symbol' | 'session'>,
  at: bigint,
): MarketTexts {
  if (!respectSessions) return {}
  const { session, nextOpen } = marketHours(calendar, Number(at))
  if (reasonOfStalePrice(calendar, Number(at)) === 'marketHalted')
    return {
      remedy: `The market of ${symbol} is open, but its price stands still: trading in it is halted, or the price provider is late. Exits wait; try again once the price is newer.`,
    }
  if (session !== 'closed') return {}
  const until = nextOpen === undefined ? 'its next session' : `${nextOpen} (Unix seconds)`
  return {
    remedy: `The market of ${symbol} is closed. Wait until ${until}, when prices resume.`,
    warning: `The market of ${symbol} is closed: its price does not move and exits wait until ${until}.`,
  }
}

export const ORACLE_DECIMALS = 8

const PRICE_PROBLEM = 'must be US dollars above 0 with at most 8 decimals, such as 120.5'

/** A price in a request; parses to the oracle's decimals, exactly. */
export const priceUsdIn = z
  .string()
  .regex(/^[0-9]{1,12}(\.[0-9]{1,8})?$/, PRICE_PROBLEM)
  .refine(text => /[1-9]/.test(text), PRICE_PROBLEM)
  .transform(text => parseUnits(text, ORACLE_DECIMALS))
  .meta({
    description: 'US dollars for one whole token',
    example: '120.5',
    pattern: '^(0{0,11}[1-9][0-9]{0,11}(\\.[0-9]{1,8})?|0{1,12}\\.0{0,7}[1-9][0-9]{0,7})$',
  })

/** Symbols separated by commas. */
export const symbolList = z
  .string()
  .max(1000)
  .transform(text => text.split(',').map(symbol => symbol.trim()))
  .refine(symbols => symbols.every(symbol => symbol.length > 0), 'must be symbols separated by commas')

export const price = z
  .object({
    priceUsd: z
      .string()
      .meta({ description: 'Decimal US dollars for one whole token; "0" if never quoted', example: '182.63' }),
    updatedAt: unixSeconds('When the price was observed; "0" if never quoted'),
    stale: z.boolean().describe('Older than the oracle and the vault allow, or never quoted'),
    unsettled: z
      .boolean()
      .describe(
        "A corporate action has changed the token's multiplier since the price was observed: nothing is bought and no exit fires until a newer price is posted",
      ),
    source: z
      .enum(PRICE_SOURCES)
      .describe(
        "Who could lie about it. updater: a key of the operator, within a bound. reports: the provider's signers; each trade brings a newer one. feed: the operators of a push feed",
      ),
  })
  .meta({ id: 'Price' })

export const presentPrice = (quote: PriceQuote): z.input<typeof price> =>
  present(price, { ...quote, priceUsd: formatUnits(quote.price, ORACLE_DECIMALS) })

export const change24hBps = z.int().nullable().describe('Over 24 hours; basis points')

/** Presents how a price changed since that of a day before. */
export const presentChange24h = (dayBefore: bigint | undefined, { price, quoted }: PriceQuote): number | null =>
  quoted ? (changeBps(dayBefore, price) ?? null) : null

const oracleQuote = price
  .extend({ symbol: z.string(), address: addressOut, quoted: z.boolean(), market: marketSession })
  .meta({ id: 'OracleQuote' })

export const presentOracleQuote = (
  { symbol, address, session }: Pick<Token, 'symbol' | 'address' | 'session'>,
  quote: PriceQuote,
): z.input<typeof oracleQuote> => ({
  symbol,
  address,
  ...presentPrice(quote),
  quoted: quote.quoted,
  market: presentMarketSession(session, quote.at),
})

export const presentListedPrice = (
  token: Pick<Token, 'symbol' | 'address' | 'session'>,
  quote: PriceQuote,
  dayBefore: ReadonlyMap<Address, bigint>,
) => ({ ...presentOracleQuote(token, quote), change24hBps: presentChange24h(dayBefore.get(token.address), quote) })

export const priceList = z
  .object({
    chainId: z.int(),
    priceOracle: addressOut,
    prices: z
      .record(z.string(), oracleQuote.extend({ change24hBps }).meta({ id: 'ListedPrice' }))
      .describe('By symbol'),
    total: z.int(),
    missing: z.array(z.string()).optional().describe('Requested symbols that are unknown'),
    asOf,
  })
  .meta({ id: 'PriceList' })

export const carriedPrices = z
  .object({
    reports: z
      .array(z.string().regex(/^0x([0-9a-fA-F]{2})+$/))
      .describe('Reports with their signatures, as the verifier takes them'),
    feeds: z.array(addressOut).describe('Tokens whose push feed the oracle copies'),
    asOf,
  })
  .meta({ id: 'CarriedPrices' })

const skippedPrice = z
  .object({
    symbol: z.string(),
    reason: z
      .enum([
        'notKnown',
        'invalidPrice',
        'unsettled',
        'noTime',
        'unchanged',
        'notNewer',
        'fromFuture',
        'deviationTooLarge',
        'duplicateInBatch',
        'refreshedRecently',
        'otherSource',
      ])
      .describe(
        "Why the price was not posted; unsettled: from before a corporate action, or on the other side of a split; deviationTooLarge needs the oracle's second role; refreshedRecently: strangers share one refresh per interval; otherSource: each trade brings its price along, and a refresh posts it only if it is named",
      ),
  })
  .meta({ id: 'SkippedPrice' })

export const priceRefresh = z
  .object({
    updated: z.array(z.string()).describe('Symbols whose price was posted'),
    skipped: z.array(skippedPrice),
    prices: z.record(z.string(), oracleQuote).describe('The prices after the refresh, by symbol'),
    provider: z.string().meta({ description: 'The market-data provider', example: 'finnhub' }),
    transactionHash: hashOut.optional().describe('Absent if there was nothing to post'),
  })
  .meta({ id: 'PriceRefresh' })
