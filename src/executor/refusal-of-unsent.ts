import type { Hex } from 'viem'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import type { GasTerms } from './object.ts'
import type { UnsentOutcome } from './relay-types.ts'

/** Returns the refusal of a request that a lane did not accept. */
export function refusalOfUnsent(outcome: UnsentOutcome, digest: Hex): Refusal {
  switch (outcome.state) {
    case 'busy': {
      const code = outcome.why === 'reverts' ? 'TOO_MANY_REVERTS' : 'EXECUTOR_BUSY'
      return refuse(code, { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    }
    case 'exhausted': {
      const { retryAfterSeconds, ...shortage } = outcome.shortage
      return refuse('GAS_BUDGET_EXHAUSTED', { digest, ...shortage }, { retryAfterSeconds })
    }
    case 'costly': {
      const { gasPriceWei, maxGasPriceWei } = outcome
      return refuse('GAS_PRICE_TOO_HIGH', {
        digest,
        gasPriceWei: `${gasPriceWei}`,
        maxGasPriceWei: `${maxGasPriceWei}`,
      })
    }
    case 'paused':
      return refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      return refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/** Returns the outcome that a request meets at the moment by what its lane says about gas; undefined if the lane accepts it. */
export function outcomeOfGas({ budgets: { shortage }, cost }: GasTerms): UnsentOutcome | undefined {
  const { gasPriceWei = 0n, maxGasPriceWei } = cost ?? {}
  if (maxGasPriceWei !== undefined && gasPriceWei > maxGasPriceWei)
    return { state: 'costly', gasPriceWei, maxGasPriceWei }
  return shortage && { state: 'exhausted', shortage }
}
