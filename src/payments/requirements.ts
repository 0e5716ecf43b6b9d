import type { PaymentRequired, PaymentRequirements as X402Requirements } from '@x402/core/types'
import type { Address } from 'viem'
import type { PaymentConfig } from '../config/config.ts'

/** What a payment must be, in x402 version 2. `extra` is the signing domain of the asset. */
export type PaymentRequirements = X402Requirements & { extra: { name: string; version: string } }

/** The registration fee of the FeeManager: base units of its asset, and who receives it. */
export type RegistrationFee = { amount: bigint; asset: Address; treasury: Address }

/** Returns what a payment must be; undefined for a fee of zero. `chainTime` is that of the fee's chain, in Unix seconds. */
export function requirementsOf(
  config: PaymentConfig,
  fee: RegistrationFee,
  chainTime: bigint,
): PaymentRequirements | undefined {
  if (fee.amount === 0n) return undefined
  // Payers derive the expiry from their own clock. The time of a development chain may have been moved ahead of it.
  const secondsAhead = Math.max(0, Number(chainTime) - Math.floor(Date.now() / 1000))
  return {
    scheme: 'exact',
    network: config.network,
    asset: config.asset ?? fee.asset,
    amount: `${fee.amount}`,
    payTo: config.payTo ?? fee.treasury,
    maxTimeoutSeconds: config.validitySeconds + secondsAhead,
    extra: { name: config.assetName, version: config.assetVersion },
  }
}

/** Returns the x402 object (version 2) that requests a payment. */
export const paymentRequired = (requirements: PaymentRequirements, url: string): PaymentRequired => ({
  x402Version: 2,
  resource: { url, description: 'Registration of one agent', mimeType: 'application/json' },
  accepts: [requirements],
})
