import type { Address } from 'viem'
import type { ClaimResult, PaymentClaim } from './payment-claim.ts'

/** Returns a function that decides claims with `decideClaim`, those of one signer one after the other. */
export function createClaimQueue(
  decideClaim: (claim: PaymentClaim) => Promise<ClaimResult>,
): (claim: PaymentClaim) => Promise<ClaimResult> {
  /** The last claim of each signer with an open claim. */
  const lastClaims = new Map<Address, Promise<unknown>>()

  return claim => {
    const { signer } = claim.registration
    const result = (lastClaims.get(signer) ?? Promise.resolve()).then(() => decideClaim(claim))
    const done = result
      .catch(() => {})
      .then(() => {
        if (lastClaims.get(signer) === done) lastClaims.delete(signer)
      })
    lastClaims.set(signer, done)
    return result
  }
}
