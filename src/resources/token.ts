import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { Address } from 'viem'
import { z } from 'zod'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import { change24hBps, marketSession, presentChange24h, presentMarketSession, presentPrice, price } from './price.ts'
import { addressOut, asOf } from './primitives.ts'

const token = z
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
      .meta({ description: "Whether the vault's on-chain allowlist has it; only in the token list of a vault" }),
    price,
    change24hBps,
    market: marketSession,
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

export const presentToken = (
  { symbol, name, address, decimals, listed, active, description }: Token,
  vaultIds: string[],
  quote: PriceQuote,
  dayBefore: ReadonlyMap<Address, bigint>,
): z.input<typeof token> => ({
  symbol,
  name,
  address,
  decimals,
  vaultIds,
  listed,
  active,
  price: presentPrice(quote),
  change24hBps: presentChange24h(dayBefore.get(address), quote),
  market: presentMarketSession(description.session, quote.at),
})

/** Returns what a model chooses a token by. */
export const briefToken = ({ symbol, price, change24hBps, market }: z.input<typeof token>) => ({
  symbol,
  priceUsd: price.priceUsd,
  stale: price.stale,
  change24hBps,
  session: market.session,
})
