import { CapitalMode, Track } from '@agent-trading-service/protocol/enums'
import type { Address } from 'viem'
import type { RegistrationPlan, RegistrationProspects } from '../chain/read-registration-terms.ts'
import { refuse } from '../errors/refuse.ts'
import type { FeeDue } from '../payments/client.ts'
import { humanUsdc } from '../resources/primitives.ts'

type Facts = {
  plan: RegistrationPlan
  prospects: RegistrationProspects
  isPaused: boolean
  /** Who would own the agent, and the identity if it is to be linked. */
  owner: Address | undefined
  due: FeeDue | undefined
}

/** Returns why the contracts or the payment would refuse a registration, as far as the request tells. */
export const registrationWarnings = (facts: Facts): string[] => [
  ...(facts.isPaused ? [sentencesOf(refuse('REGISTRATION_PAUSED'))] : []),
  ...vaultWarnings(facts),
  ...identityWarnings(facts),
  ...feeWarnings(facts),
]

const sentencesOf = ({ body: { error, remedy } }: ReturnType<typeof refuse>) => `${error} ${remedy}`

function vaultWarnings({ plan: { vault }, prospects }: Facts): string[] {
  const found = prospects.vault
  if (vault === undefined || found === undefined) return []
  if (!found.isRegistered) return [sentencesOf(refuse('VAULT_NOT_REGISTERED', { vault }))]
  if (found.challenge?.active !== true)
    return [sentencesOf(refuse('VAULT_TRACK_NOT_ACTIVE', { vault, trackId: BigInt(Track.Challenge) }))]
  const caps = (found.totalCaps ?? 0n) + found.challenge.initialAllocation
  const assets = found.totalAssets
  return [
    ...(found.capitalMode === CapitalMode.Real && found.totalCaps !== undefined && assets !== undefined && caps > assets
      ? [sentencesOf(refuse('CAPS_EXCEED_ASSETS', { vault, caps, assets }))]
      : []),
    ...(found.tradingPaused === true
      ? ['Trading is paused in this vault: the agent can register but not trade yet.']
      : []),
  ]
}

function identityWarnings({ plan: { erc8004AgentId }, prospects: { identityHolder }, owner }: Facts): string[] {
  if (erc8004AgentId === undefined || owner === undefined) return []
  if (identityHolder === undefined) return [sentencesOf(refuse('ERC8004_IDENTITY_NOT_FOUND', { erc8004AgentId }))]
  if (identityHolder === owner) return []
  const facts = { erc8004AgentId, expected: owner, actual: identityHolder }
  return [sentencesOf(refuse('ERC8004_OWNER_MISMATCH', facts))]
}

function feeWarnings({ plan: { payer, asset }, prospects: { payerBalance }, due }: Facts): string[] {
  if (due === undefined || payerBalance === undefined || asset !== due.requirements.asset) return []
  const fee = BigInt(due.requirements.amount)
  if (payerBalance >= fee) return []
  return [
    `The payer ${payer} has ${humanUsdc(payerBalance)} USDC and the fee is ${humanUsdc(fee)} USDC: send it some, or pay from another account.`,
  ]
}
