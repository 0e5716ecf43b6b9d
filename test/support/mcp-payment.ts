import { privateKeyToAccount } from 'viem/accounts'
import { inject } from 'vitest'
import { createPayer } from '../../packages/client/src/pay.ts'
import type { Pay } from './mcp-client.ts'

const deployment = inject('deployment')
const payer = createPayer({
  account: privateKeyToAccount(deployment.accounts.payer.privateKey),
  chainId: deployment.chainId,
  asset: deployment.contracts.USDC,
  maxAmount: 1_000_000n,
  maxValiditySeconds: Number.POSITIVE_INFINITY, // tests move the chain's clock
})
/** Pays the registration fee with the official x402 client. */
export const pay: Pay = async required => ({ 'x402/payment': (await payer.pay(required))['PAYMENT-SIGNATURE'] ?? '' })
