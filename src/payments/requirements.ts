import type { PaymentRequired, PaymentRequirements as Requirements } from '@x402/core/types'
import type { Address } from 'viem'

/** What a payment must be, in x402 version 2; `extra` is the signing domain of the asset. */
export type PaymentRequirements = Requirements & { extra: { name: string; version: string } }

/** Where and in what a fee is paid (x402 scheme `exact`); what is left out comes from the FeeManager. */
export type PaymentConfig = {
  /** CAIP-2; it may be another chain than the deployment's. */
  network: `eip155:${number}`
  asset: Address | undefined
  /** Signing domain of the asset. */
  assetName: string
  assetVersion: string
  payTo: Address | undefined
  /** The Worker itself verifies and settles when undefined. */
  facilitatorUrl: string | undefined
  /** Nodes of the fee network: they say what became of a settlement whose answer was lost. */
  rpcUrls: string[]
  /** How long a payment may be valid. */
  validitySeconds: number
  facilitatorTimeoutMs: number
}

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
