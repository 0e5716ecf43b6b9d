import { CapitalMode } from '@agent-trading-service/protocol/enums'
import type { SeedOptions } from '../devnet/seed.ts'
import { type Listing, limits, type SeedVault, unsecured, usdc, vaults } from '../devnet/seed-config.ts'
import type { Venue, VenueToken, VenueTrack } from '../packages/cli/src/tape/venue.ts'

export type SeedVenue = NonNullable<SeedOptions['venue']>

export const TOKEN_DECIMALS = 18
const POOL_FEE = 500
const POOL_DEPTH = usdc('50000000')
/** The fees of pools of Uniswap v3, in hundredths of a basis point. */
const POOL_FEES = [500, 3_000, 10_000]

/** Returns the vaults of the embedded chain, each of which lists every token. Prices are in US dollars. */
export function venueOfPrices(prices: ReadonlyMap<string, string>): SeedVenue {
  const listings = [...prices].map(([symbol, price]) => ({
    symbol,
    name: symbol,
    decimals: TOKEN_DECIMALS,
    fee: POOL_FEE,
    price,
    depthUsdc: POOL_DEPTH,
  }))
  return { listings, vaults: vaults.map(vault => ({ ...vault, tokens: [...prices.keys()] })) }
}

/** Returns a deployment's tokens and vaults as the embedded chain gets them, at its own prices or at others. */
export function venueOf({ tokens, vaults }: Venue, prices?: ReadonlyMap<string, string>): SeedVenue {
  return {
    listings: tokens.map(token => listingOf(token, prices?.get(token.symbol) ?? token.priceUsd)),
    vaults: vaults.map(
      ({ slug, totalAssets, tokens, tracks }): SeedVault => ({
        slug,
        name: slug,
        symbol: `v${slug.slice(0, 3).toUpperCase()}`,
        assets: BigInt(totalAssets),
        tokens,
        tracks: tracks.map(trackOf),
      }),
    ),
  }
}

const listingOf = ({ symbol, name, decimals, poolFee, depthUsdc }: VenueToken, price: string): Listing => ({
  symbol,
  name,
  decimals,
  fee: poolFee === null ? POOL_FEE : (POOL_FEES.find(fee => fee >= poolFee) ?? 10_000),
  price,
  depthUsdc: depthUsdc === null ? POOL_DEPTH : BigInt(depthUsdc),
})

function trackOf({ capitalMode, tradePolicy, maxWasteBps, ...config }: VenueTrack): SeedVault['tracks'][number] {
  return {
    policy: {
      trackId: BigInt(config.trackId),
      initialAllocation: BigInt(config.initialAllocation),
      maxAllocation: BigInt(config.maxAllocation),
      maxDrawdownBps: BigInt(config.maxDrawdownBps),
      maxTradeSizeBps: BigInt(config.maxTradeSizeBps),
      maxDailyTurnoverBps: BigInt(config.maxDailyTurnoverBps),
      maxDailyLossBps: BigInt(config.maxDailyLossBps),
      evaluationPeriod: BigInt(config.evaluationPeriod),
      minTrades: BigInt(config.minTrades),
      promotionScore: BigInt(config.promotionScore),
      active: config.active,
      maxStopLossBps: BigInt(config.maxStopLossBps),
      minTakeProfitBps: BigInt(config.minTakeProfitBps),
      maxTakeProfitBps: BigInt(config.maxTakeProfitBps),
      requireStopLoss: config.requireStopLoss,
      requireTakeProfit: config.requireTakeProfit,
    },
    capitalMode: capitalMode === null ? undefined : CapitalMode[capitalMode],
    limits:
      tradePolicy === null
        ? limits
        : {
            maxEntrySlippageBps: tradePolicy.maxEntrySlippageBps,
            maxExitSlippageBps: tradePolicy.maxExitSlippageBps,
            exitSlippageStartBps: tradePolicy.exitSlippageStartBps,
            exitWideningSeconds: Number(tradePolicy.exitWideningSeconds),
            minTradeUsdc: BigInt(tradePolicy.minTradeUsdc),
            maxSpotDeviationBps: tradePolicy.maxSpotDeviationBps,
            maxTwapDeviationBps: tradePolicy.maxTwapDeviationBps,
            twapWindow: Number(tradePolicy.twapWindowSeconds),
            maxDeadlineSeconds: Number(tradePolicy.maxDeadlineSeconds),
          },
    risk: maxWasteBps === null ? unsecured : { firstLossBps: 0, maxWasteBps },
  }
}
