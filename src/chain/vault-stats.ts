import { type PriceQuote, strictestMaxAge, toPriceQuote, usdcValue } from '@agent-trading-service/protocol/oracle-price'
import { ONE_SHARE } from '@agent-trading-service/protocol/price-basis'
import type { Address } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { nowAt } from '../clock.ts'
import { refuse } from '../errors/refuse.ts'
import { callReader } from './call-service-reader.ts'
import { sourceOf } from './carried-prices.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { tryDecodeResult } from './encode-and-decode-call.ts'
import { toVaultWorth, type VaultWorth } from './equity-and-worth.ts'
import { readAtNewestIfStale } from './newest-prices.ts'
import { decodeMultiplier } from './token-facts.ts'

/** A vault's holding of a token: the token's base units, and their USDC base units at the last known price. */
export type VaultHolding = { token: Address; amount: bigint; multiplier: bigint; value: bigint; quote: PriceQuote }

/** Worth, holdings and allocations of a vault at one block. */
export type VaultFigures = {
  worth: VaultWorth
  holdings: VaultHolding[]
  /** The sum of the caps of all its agents. */
  cap: bigint
}

/** Reads the figures of a vault. Throws VAULT_NOT_FOUND. */
export const getVaultFigures = (chain: TradingChain, vault: Address) =>
  readAtNewestIfStale(
    chain,
    priced => readVaultFigures(priced, vault),
    ({ holdings }) => holdings.flatMap(({ token, quote }) => (quote.stale ? [token] : [])),
  )

async function readVaultFigures(chain: TradingChain, vault: Address): Promise<VaultFigures & { block: Block }> {
  const { block, values } = await callReader(chain, 'vaultFigures', vault, [])
  const { figures } = values
  const worth = toVaultWorth(figures.worth)
  if (worth === undefined) throw refuse('VAULT_NOT_FOUND', { id: vault })
  const maxPriceAge = tryDecodeResult(mandateVaultAbi, 'maxPriceAge', figures.maxPriceAge) ?? 0n
  return {
    block,
    worth,
    cap: tryDecodeResult(allocationManagerAbi, 'totalAgentCaps', figures.totalAgentCaps) ?? 0n,
    holdings: figures.holdings.map(({ token, amount, ...results }) => {
      const maxAge = tryDecodeResult(priceOracleAbi, 'maxAgeOf', results.maxAge) ?? 0n
      const round = tryDecodeResult(priceOracleAbi, 'latestRoundData', results.round)
      const { multiplier = ONE_SHARE, effectiveAt } = decodeMultiplier(results.multiplier)
      const quote = toPriceQuote(round, strictestMaxAge([maxAge, maxPriceAge]), {
        at: nowAt(block),
        effectiveAt,
        source: sourceOf(chain, token).kind,
      })
      const decimals = tryDecodeResult(tokenRegistryAbi, 'tokenDecimals', results.decimals)
      const value = decimals === undefined ? 0n : usdcValue(amount, { price: quote.price, decimals })
      return { token, amount, multiplier, value, quote }
    }),
  }
}
