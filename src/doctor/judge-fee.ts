import { type Address, domainSeparator, zeroAddress } from 'viem'
import type { DeploymentFacts } from './deployment-facts.ts'
import { type Finding, findingsOf } from './finding.ts'

const fees = findingsOf('fee')
const domains = findingsOf('signing domain')

/** How fees are paid over x402 on the deployment's own chain. */
export type FeePayment = { assetName: string; assetVersion: string; asset: Address | undefined }

/** Judges the registration fee, and whether payers can sign for its asset. `payment` is undefined without x402. */
export function judgeFee(
  { fee, chainId, contracts }: DeploymentFacts,
  payment: FeePayment | undefined,
  isEmbedded: boolean,
): Finding[] {
  if (fee === undefined)
    return [fees.wrong('FeeManager', 'FeeManager states no registration fee.', 'correct FeeManager in CONTRACTS')]
  const found: Finding[] = []
  if (fee.treasury === zeroAddress)
    found.push(
      fees.wrong('treasury', 'FeeManager has no treasury.', `ats admin call 'FeeManager.setTreasury("<account>")'`),
    )
  if (fee.amount === 0n && !isEmbedded)
    found.push(
      fees.warning(
        'registration',
        'Registration is free, so strangers can fill the vaults with agents.',
        `ats admin call 'FeeManager.setRegistrationFee("1000000")'`,
      ),
    )
  else found.push(fees.ok('registration', `A registration costs ${fee.amount} base units of ${fee.asset}.`))
  const asset = payment?.asset ?? fee.asset
  if (payment === undefined || asset !== contracts.USDC || fee.assetDomainSeparator === undefined) return found
  const expected = domainSeparator({
    domain: { name: payment.assetName, version: payment.assetVersion, chainId, verifyingContract: asset },
  })
  if (expected === fee.assetDomainSeparator)
    return [...found, domains.ok('USDC', `USDC signs as ${payment.assetName} ${payment.assetVersion}.`)]
  return [
    ...found,
    domains.wrong(
      'USDC',
      `USDC does not sign as ${payment.assetName} version ${payment.assetVersion}, so no fee can be paid over x402.`,
      `set X402_ASSET_NAME${fee.assetName && fee.assetName !== payment.assetName ? ` to ${fee.assetName}` : ''} and X402_ASSET_VERSION to those of ${asset}`,
    ),
  ]
}
