import type { Hex } from 'viem'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
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
    case 'costly':
      if ('gasPriceWei' in outcome) {
        const { gasPriceWei, maxGasPriceWei } = outcome
        return refuse('GAS_PRICE_TOO_HIGH', {
          digest,
          gasPriceWei: `${gasPriceWei}`,
          maxGasPriceWei: `${maxGasPriceWei}`,
        })
      }
      return refuse('L1_GAS_TOO_HIGH', { digest, l1Gas: outcome.l1Gas, maxL1Gas: outcome.maxL1Gas })
    case 'paused':
      return refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      return refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}
