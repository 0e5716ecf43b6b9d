import { formatUnits } from 'viem'
import { z } from 'zod'
import { marketHours } from '../catalog/market-hours.ts'
import type { Token } from '../chain/listings.ts'
import type { Quote } from '../protocol/price-quote.ts'
import { addressOut, asOf, hashOut, unixSeconds } from './primitives.ts'

export const price = z
  .object({
    priceUsd: z
      .string()
      .meta({ description: 'Decimal US dollars for one whole token; "0" when never quoted', example: '182.63' }),
    updatedAt: unixSeconds('When the price was observed; "0" when never quoted'),
    stale: z.boolean().meta({ description: 'Older than the windows of oracle and vault allow, or never quoted' }),
  })
  .meta({ id: 'Price' })

export const market = z
  .object({
    session: z.enum(['regular', 'extended', 'closed', 'continuous']).meta({
      description:
        'regular: the hours of the exchange. extended: the rest of the 24/5 week. closed: weekend or holiday. continuous: no equity, always open',
    }),
    nextOpen: unixSeconds('When it opens again; null unless closed').nullable(),
  })
  .meta({ id: 'MarketSession', description: 'Whether the market that the price comes from is open' })

export const token = z
  .object({
    symbol: z.string(),
    name: z.string(),
    address: addressOut,
    decimals: z.int().meta({ description: "Decimals of the token's amounts" }),
    vaultIds: z.array(z.string()).meta({ description: 'Slugs of the vaults that allow the token' }),
    listed: z.boolean().meta({ description: 'Registered in the token registry' }),
    active: z.boolean().meta({ description: 'Active in the token registry' }),
    allowedInVault: z
      .boolean()
      .optional()
      .meta({ description: "The vault's on-chain allowlist; only in a vault's list" }),
    price,
    market,
  })
  .meta({ id: 'Token' })

export const vaultTokens = z
  .object({
    vaultId: z.string(),
    chainId: z.int(),
    priceOracle: addressOut,
    tokens: z.array(token),
    total: z.int(),
    asOf,
  })
  .meta({ id: 'VaultTokens' })
export const tokenCatalog = z
  .object({
    chainId: z.int(),
    tokenRegistry: addressOut,
    priceOracle: addressOut,
    tokens: z.array(token),
    total: z.int(),
    asOf,
  })
  .meta({ id: 'TokenCatalog' })

export const oracleQuote = price
  .extend({ symbol: z.string(), address: addressOut, quoted: z.boolean(), market })
  .meta({ id: 'OracleQuote' })
export const priceList = z
  .object({
    chainId: z.int(),
    priceOracle: addressOut,
    prices: z.record(z.string(), oracleQuote).meta({ description: 'By symbol' }),
    total: z.int(),
    missing: z.array(z.string()).optional().meta({ description: 'Symbols that were asked for and are not known' }),
    asOf,
  })
  .meta({ id: 'PriceList' })

export const skippedPrice = z
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
      ])
      .meta({ description: 'Why the price was not posted; deviationTooLarge needs the second role of the oracle' }),
  })
  .meta({ id: 'SkippedPrice' })

export const priceRefresh = z
  .object({
    updated: z.array(z.string()).meta({ description: 'Symbols whose price was posted' }),
    skipped: z.array(skippedPrice),
    prices: z.record(z.string(), oracleQuote).meta({ description: 'The prices after the refresh, by symbol' }),
    provider: z.string().meta({ description: 'The market-data provider', example: 'finnhub' }),
    transactionHash: hashOut.optional().meta({ description: 'Absent when there was nothing to post' }),
  })
  .meta({ id: 'PriceRefresh' })

/** Oracle prices have 8 decimals. */
export const ORACLE_DECIMALS = 8
export const presentPrice = (quote: Quote): z.input<typeof price> => ({
  priceUsd: formatUnits(quote.price, ORACLE_DECIMALS),
  updatedAt: `${quote.updatedAt}`,
  stale: quote.stale,
})

/** The market of a token at a time in Unix seconds. */
export function presentMarket(symbol: string, at: bigint): z.input<typeof market> {
  const { session, nextOpen } = marketHours(symbol, Number(at))
  return { session, nextOpen: nextOpen === undefined ? null : `${nextOpen}` }
}

export const presentOracleQuote = (
  { symbol, address }: Pick<Token, 'symbol' | 'address'>,
  quote: Quote,
): z.input<typeof oracleQuote> => ({
  symbol,
  address,
  ...presentPrice(quote),
  quoted: quote.quoted,
  market: presentMarket(symbol, quote.at),
})

export const presentToken = (
  { symbol, name, address, decimals, listed, active }: Token,
  vaultIds: string[],
  quote: Quote,
): z.input<typeof token> => ({
  symbol,
  name,
  address,
  decimals,
  vaultIds,
  listed,
  active,
  price: presentPrice(quote),
  market: presentMarket(symbol, quote.at),
})
