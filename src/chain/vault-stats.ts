import type { Address } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { refuse } from '../errors/catalogue.ts'
import { type PriceQuote, strictestMaxAge, toPriceQuote, usdcValue } from '../protocol/price-quote.ts'
import { type Block, maybe, type TradingChain } from './chain.ts'
import { type Worth, worthOf } from './equity.ts'
import { outcomeOf } from './multicall.ts'
import { askReader } from './service-reader.ts'

/** What a vault holds of a token: the token's base units, and USDC base units at the last known price. */
export type Holding = { token: Address; amount: bigint; value: bigint; quote: PriceQuote }

/** What a vault has and what of it is allocated, at one block. */
export type VaultFigures = {
  worth: Worth
  holdings: Holding[]
  /** The sum of all its agents' caps. */
  cap: bigint
  /** What the agents that were asked about use of their caps; undefined where they are too many for one call. */
  used: bigint | undefined
}

/** Reads what a vault has, with the use that agents make of it. Throws VAULT_NOT_FOUND where it is no such contract. */
export async function getVaultFigures(
  chain: TradingChain,
  vault: Address,
  agents: readonly bigint[],
): Promise<VaultFigures & { block: Block }> {
  const { block, answers } = await askReader(chain, 'vaultFigures', vault, agents)
  const [{ maxPriceAge, totalAgentCaps, holdings: held, ...told }] = answers
  const shares = worthOf(told.worth)
  if (shares === undefined) throw refuse('VAULT_NOT_FOUND', { id: vault })
  const window = maybe(outcomeOf(mandateVaultAbi, 'maxPriceAge', maxPriceAge)) ?? 0n
  return {
    block,
    worth: shares,
    cap: maybe(outcomeOf(allocationManagerAbi, 'totalAgentCaps', totalAgentCaps)) ?? 0n,
    used: told.counted === BigInt(agents.length) ? told.used : undefined,
    holdings: held.map(({ token, amount, round, maxAge, decimals }) => {
      const age = maybe(outcomeOf(priceOracleAbi, 'maxAgeOf', maxAge)) ?? 0n
      const latest = maybe(outcomeOf(priceOracleAbi, 'latestRoundData', round))
      const quote = toPriceQuote(latest, strictestMaxAge([age, window]), block)
      const unit = maybe(outcomeOf(tokenRegistryAbi, 'tokenDecimals', decimals))
      return {
        token,
        amount,
        value: unit === undefined ? 0n : usdcValue(amount, { price: quote.price, decimals: unit }),
        quote,
      }
    }),
  }
}
