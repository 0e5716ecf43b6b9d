import type { PaymentRequired, PaymentRequirements as Requirements } from '@x402/core/types'
import type { Address } from 'viem'
import type { PaymentConfig } from '../config.ts'

/** What a payment must be, in x402 version 2; `extra` is the signing domain of the asset. */
export type PaymentRequirements = Requirements & { extra: { name: string; version: string } }

/** The registration fee of the FeeManager: base units of its asset, and who receives it. */
export type Fee = { amount: bigint; asset: Address; treasury: Address }

/** What a payment must be. `chainTime` is the deployment chain's, Unix seconds; a fee of zero asks for nothing. */
export function requirementsOf(config: PaymentConfig, fee: Fee, chainTime: bigint): PaymentRequirements | undefined {
  if (fee.amount === 0n) return undefined
  // A payer signs until when by its own clock; that of a development chain may have been moved ahead.
  const ahead = Math.max(0, Number(chainTime) - Math.floor(Date.now() / 1000))
  return {
    scheme: 'exact',
    network: config.network,
    asset: config.asset ?? fee.asset,
    amount: `${fee.amount}`,
    payTo: config.payTo ?? fee.treasury,
    maxTimeoutSeconds: config.validitySeconds + ahead,
    extra: { name: config.assetName, version: config.assetVersion },
  }
}

/** The answer that asks for a payment (x402 version 2). */
export const paymentRequired = (requirements: PaymentRequirements, url: string): PaymentRequired => ({
  x402Version: 2,
  resource: { url, description: 'Registration of one agent', mimeType: 'application/json' },
  accepts: [requirements],
})
