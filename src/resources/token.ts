import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import { ISSUER_POWERS, type TokenDescription } from '@agent-trading-service/protocol/token-description'
import { RESTRICTION_KINDS, type TokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import type { Address } from 'viem'
import { z } from 'zod'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import { change24hBps, marketSession, presentChange24h, presentMarketSession, presentPrice, price } from './price.ts'
import { addressOut, asOf } from './primitives.ts'

/** What an issuer may do to a token and its holders. */
const issuer = z
  .object({
    address: addressOut.nullable().meta({ description: "The beacon of the token's proxy; null if it is not recorded" }),
    powers: z.array(z.enum(ISSUER_POWERS)).meta({
      description:
        'pause transfers, block accounts, burn tokens of any holder, upgrade the token; timelocked: only through a timelock',
    }),
  })
  .meta({ id: 'TokenIssuer', description: 'What the token registry records of the issuer' })

export const tokenRestriction = z
  .object({
    kind: z.enum(RESTRICTION_KINDS).meta({
      description:
        'tokenPaused, issuerPaused: the issuer paused this token, or all of its tokens. blocked: it blocked `account`, which sales pass. shortOfLedger: the vault holds less than its ledger says, because tokens were burned',
    }),
    account: addressOut.meta({ description: 'The token, the blocked account, or the vault' }),
  })
  .meta({
    id: 'TokenRestriction',
    description: 'What keeps the vault from selling the token; only its issuer can lift it',
  })

export const presentRestriction = ({ kind, account }: TokenRestriction): z.input<typeof tokenRestriction> => ({
  kind,
  account,
})

const presentIssuer = ({ issuer: address, powers }: TokenDescription): z.input<typeof issuer> | null =>
  address === undefined && powers.length === 0 ? null : { address: address ?? null, powers }

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
    issuer: issuer.nullable().meta({ description: 'Null if the registry records neither an issuer nor powers' }),
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
  issuer: presentIssuer(description),
})

/** Returns what a model chooses a token by. */
export const briefToken = ({ symbol, price, change24hBps, market }: z.input<typeof token>) => ({
  symbol,
  priceUsd: price.priceUsd,
  stale: price.stale,
  change24hBps,
  session: market.session,
})
