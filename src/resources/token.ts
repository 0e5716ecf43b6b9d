import type { PriceQuote } from '@agent-trading-service/protocol/oracle-price'
import { toSharePrice } from '@agent-trading-service/protocol/price-basis'
import { ISSUER_POWERS, LISTING_SESSIONS, TOKEN_KINDS } from '@agent-trading-service/protocol/token-description'
import { RESTRICTION_KINDS, type TokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import { type Address, formatUnits } from 'viem'
import { z } from 'zod'
import type { Token } from '../chain/read-vaults-and-tokens.ts'
import type { TokenFacts } from '../chain/token-facts.ts'
import { present } from './present.ts'
import {
  change24hBps,
  marketSession,
  ORACLE_DECIMALS,
  presentChange24h,
  presentMarketSession,
  presentPrice,
  price,
} from './price.ts'
import { addressOut, asOf, unixSeconds } from './primitives.ts'

/** A multiplier in a response. */
export const multiplierOut = (description: string) =>
  z.string().meta({ description: `${description}; decimal`, example: '1.000957519890990718' })

export const tokenRestriction = z
  .object({
    kind: z
      .enum(RESTRICTION_KINDS)
      .describe(
        'tokenPaused, issuerPaused: the issuer paused this token, or all of its tokens. blocked: it blocked `account`, which sales pass. shortOfLedger: the vault holds less than its ledger says, because tokens were burned',
      ),
    account: addressOut.describe('The token, the blocked account, or the vault'),
  })
  .meta({
    id: 'TokenRestriction',
    description: 'What keeps the vault from selling the token; only its issuer can lift it',
  })

export const presentRestriction = (restriction: TokenRestriction): z.input<typeof tokenRestriction> =>
  present(tokenRestriction, restriction)

const token = z
  .object({
    symbol: z.string(),
    name: z.string(),
    address: addressOut,
    decimals: z.int().describe("Decimals of the token's amounts"),
    vaultIds: z.array(z.string()).describe('Slugs of the vaults that allow the token'),
    listed: z.boolean().describe('Registered in the token registry'),
    active: z.boolean().describe('Active in the token registry'),
    allowedInVault: z
      .boolean()
      .optional()
      .describe("Whether the vault's on-chain allowlist has it; only in the token list of a vault"),
    kind: z
      .enum(TOKEN_KINDS)
      .describe(
        'plain: stands for what it always stood for. scaledUI: stands for `multiplier` shares (ERC-8056). wrapper: holds a rebasing token (ERC-4626)',
      ),
    multiplier: multiplierOut('How many shares one token stands for'),
    pendingMultiplier: multiplierOut('The announced one; null if none is').nullable(),
    effectiveAt: unixSeconds(
      'When the announced change takes effect, or the last one did; null if none is known',
    ).nullable(),
    sharePriceUsd: z.string().describe('priceUsd over multiplier: US dollars for one share'),
    tradingSession: z.enum(LISTING_SESSIONS).describe('The hours in which its share is priced'),
    issuer: z
      .object({
        address: addressOut.describe("The beacon of the token's proxy"),
        powers: z
          .array(z.enum(ISSUER_POWERS))
          .describe('What the issuer may do to the token and its holders; timelocked: only after a delay'),
      })
      .nullable()
      .describe('As the token registry describes it; null for a token without one'),
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
  { symbol, name, address, decimals, listed, active, ...facts }: Token,
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
  ...presentTokenFacts(facts, quote),
  price: presentPrice(quote),
  change24hBps: presentChange24h(dayBefore.get(address), quote),
  market: presentMarketSession(facts.session, quote.at),
})

const MULTIPLIER_DECIMALS = 18

/** Presents a multiplier as a decimal. */
export const presentMultiplier = (multiplier: bigint): string => formatUnits(multiplier, MULTIPLIER_DECIMALS)

const presentTokenFacts = (
  { kind, session, powers, issuer, multiplier, pending, changedAt }: TokenFacts,
  { price }: PriceQuote,
) => ({
  kind,
  multiplier: presentMultiplier(multiplier),
  pendingMultiplier: pending ? presentMultiplier(pending.multiplier) : null,
  effectiveAt: pending ? `${pending.effectiveAt}` : changedAt > 0n ? `${changedAt}` : null,
  sharePriceUsd: formatUnits(toSharePrice(price, multiplier), ORACLE_DECIMALS),
  tradingSession: session,
  issuer: issuer === undefined ? null : { address: issuer, powers },
})

/** Returns what a model chooses a token by. */
export const briefToken = ({ symbol, price, change24hBps, market }: z.input<typeof token>) => ({
  symbol,
  priceUsd: price.priceUsd,
  stale: price.stale,
  change24hBps,
  session: market.session,
})
