import { privateKeyToAccount } from 'viem/accounts'
import { inject } from 'vitest'
import { payerOf } from '../../client/payer.ts'
import type { Pay } from './mcp-client.ts'

const deployment = inject('deployment')
const { sign } = payerOf(privateKeyToAccount(deployment.accounts.payer.privateKey), {
  network: `eip155:${deployment.chainId}`,
  asset: deployment.contracts.USDC,
})
/** Pays the registration fee with the official x402 client. */
export const pay: Pay = async required => ({ 'x402/payment': (await sign(required))['PAYMENT-SIGNATURE'] ?? '' })
