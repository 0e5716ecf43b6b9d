import type { DeploymentFacts, ServiceAccount } from './deployment-facts.ts'
import type { Finding } from './finding.ts'
import { judgeRoles } from './judge-accounts.ts'
import { judgeAdmins, judgeDomains, judgeWiring } from './judge-contracts.ts'
import { type FeePayment, judgeFee } from './judge-fee.ts'
import { judgePolicies } from './judge-limits.ts'

/** Judges how a deployment is set up: what stays as it is until somebody changes it. */
export function judgeDeployment(
  facts: DeploymentFacts,
  {
    accounts,
    payment,
    isEmbedded,
  }: { accounts: readonly ServiceAccount[]; payment: FeePayment | undefined; isEmbedded: boolean },
): Finding[] {
  return [
    ...judgeWiring(facts),
    ...judgeAdmins(facts, isEmbedded),
    ...judgeRoles(facts, accounts),
    ...judgeFee(facts, payment, isEmbedded),
    ...judgeDomains(facts),
    ...judgePolicies(facts, isEmbedded),
  ]
}
