import { hashExits } from '@agent-trading-service/protocol/typed-data'
import { readSigningDomains, signingContractOf } from '../chain/signing-domains.ts'
import type { Context } from '../context.ts'
import { presentEip712, primaryTypes } from '../resources/typed-data.ts'
import { EXITS_HASH_RECIPE } from './signing-guide-text.ts'
import { EXAMPLE_EXITS } from './signing-vectors.ts'

/** Reads the types and domains of every signed message of this deployment, as JSON for programs and models. */
export async function readSigningReference(context: Context) {
  const domains = await readSigningDomains(context.chain)
  return {
    how: 'Sign with eth_signTypedData_v4 (65 bytes r, s, v). Every quote returns typedData that is ready to sign.',
    messages: primaryTypes.flatMap(primaryType => {
      const contract = signingContractOf(primaryType)
      const domain = domains[contract]
      return domain ? [{ contract, ...presentEip712(domain, primaryType) }] : []
    }),
    units:
      'usdcAmount is signed in USDC base units (6 decimals); deadline is in Unix seconds; nonce is the one in the quote.',
    exitsHash: {
      recipe: EXITS_HASH_RECIPE,
      example: {
        exits: EXAMPLE_EXITS.map(rule => ({ ...rule, triggerBps: Number(rule.triggerBps) })),
        exitsHash: hashExits(EXAMPLE_EXITS),
      },
    },
  }
}
