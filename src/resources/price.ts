import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import { formatUnits } from 'viem'
import { z } from 'zod'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import { marketSession, presentMarketSession } from './market-session.ts'
import { addressOut, asOf, hashOut, unixSeconds } from './primitives.ts'

export const ORACLE_DECIMALS = 8

export const price = z
  .object({
    priceUsd: z
      .string()
      .meta({ description: 'Decimal US dollars for one whole token; "0" if never quoted', example: '182.63' }),
    updatedAt: unixSeconds('When the price was observed; "0" if never quoted'),
    stale: z.boolean().meta({ description: 'Older than the oracle and the vault allow, or never quoted' }),
  })
  .meta({ id: 'Price' })

export const presentPrice = (quote: PriceQuote): z.input<typeof price> => ({
  priceUsd: formatUnits(quote.price, ORACLE_DECIMALS),
  updatedAt: `${quote.updatedAt}`,
  stale: quote.stale,
})

const oracleQuote = price
  .extend({ symbol: z.string(), address: addressOut, quoted: z.boolean(), market: marketSession })
  .meta({ id: 'OracleQuote' })

export const presentOracleQuote = (
  { symbol, address }: Pick<Token, 'symbol' | 'address'>,
  quote: PriceQuote,
): z.input<typeof oracleQuote> => ({
  symbol,
  address,
  ...presentPrice(quote),
  quoted: quote.quoted,
  market: presentMarketSession(symbol, quote.at),
})

export const priceList = z
  .object({
    chainId: z.int(),
    priceOracle: addressOut,
    prices: z.record(z.string(), oracleQuote).meta({ description: 'By symbol' }),
    total: z.int(),
    missing: z.array(z.string()).optional().meta({ description: 'Requested symbols that are unknown' }),
    asOf,
  })
  .meta({ id: 'PriceList' })

const skippedPrice = z
  .object({
    symbol: z.string(),
    reason: z
      .enum([
        'notKnown',
        'invalidPrice',
        'noTime',
        'unchanged',
        'notNewer',
        'fromFuture',
        'deviationTooLarge',
        'duplicateInBatch',
        'refreshedRecently',
      ])
      .meta({
        description:
          "Why the price was not posted; deviationTooLarge needs the oracle's second role; refreshedRecently: strangers share one refresh per interval",
      }),
  })
  .meta({ id: 'SkippedPrice' })

export const priceRefresh = z
  .object({
    updated: z.array(z.string()).meta({ description: 'Symbols whose price was posted' }),
    skipped: z.array(skippedPrice),
    prices: z.record(z.string(), oracleQuote).meta({ description: 'The prices after the refresh, by symbol' }),
    provider: z.string().meta({ description: 'The market-data provider', example: 'finnhub' }),
    transactionHash: hashOut.optional().meta({ description: 'Absent if there was nothing to post' }),
  })
  .meta({ id: 'PriceRefresh' })
