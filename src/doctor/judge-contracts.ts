import { zeroAddress } from 'viem'
import type { DeploymentFacts } from './deployment-facts.ts'
import { type Finding, findingsOf } from './finding.ts'

const wiring = findingsOf('wiring')
const admin = findingsOf('admin')
const domains = findingsOf('signing domain')

/** The delay below which an admin's change is not public for long enough. */
const MIN_TIMELOCK_DELAY_SECONDS = 86_400n

type WiringFacts = Pick<DeploymentFacts, 'wiring'>

/** Judges whether each contract names the ones it must. */
export const judgeWiring = ({ wiring: facts }: WiringFacts): Finding[] =>
  facts.map(({ contract, getter, target, expected, actual, correction }) => {
    const subject = `${contract}.${getter}`
    if (actual === expected) return wiring.ok(subject, `${subject} is ${target}.`)
    const fix = correction
      ? `ats admin call '${correction}'`
      : `${contract} cannot be changed: correct its address, or that of ${target}, in CONTRACTS.`
    if (actual === undefined) return wiring.wrong(subject, `${contract} has no ${getter}.`, fix)
    return wiring.wrong(subject, `${subject} is ${actual}, not ${target} (${expected}).`, fix)
  })

/** Judges who administers the contracts. On the embedded chain nobody needs a delay. */
export function judgeAdmins({ admins, timelock }: DeploymentFacts, isEmbedded: boolean): Finding[] {
  const owned = admins.map(({ contract, admin: holder, pending }) => {
    if (holder === undefined || timelock === undefined || holder === timelock.address)
      return pending === undefined
        ? admin.ok(contract, `${contract} is administered by ${holder === undefined ? 'nobody known' : holder}.`)
        : admin.warning(
            contract,
            `${contract} is offered to ${pending}, who becomes its admin by accepting it.`,
            `ats admin call '${contract}.beginDefaultAdminTransfer("${zeroAddress}")' unless this was announced`,
          )
    return admin.wrong(
      contract,
      `${contract} is administered by ${holder}, not by the timelock ${timelock.address}.`,
      `ats admin call '${contract}.beginDefaultAdminTransfer("${timelock.address}")' with the key of ${holder}, then ats admin call '${contract}.acceptDefaultAdminTransfer()'`,
    )
  })
  return [...owned, ...judgeDelay(timelock, isEmbedded)]
}

function judgeDelay(timelock: DeploymentFacts['timelock'], isEmbedded: boolean): Finding[] {
  if (timelock === undefined)
    return [
      isEmbedded
        ? admin.ok('Timelock', 'The admin is no timelock, which an embedded chain does not need.')
        : admin.wrong(
            'Timelock',
            'The admin of the contracts is no timelock: one key changes everything at once.',
            'npm run deploy:contracts, which makes a timelock the admin',
          ),
    ]
  const { delaySeconds } = timelock
  if (isEmbedded || delaySeconds >= MIN_TIMELOCK_DELAY_SECONDS)
    return [admin.ok('Timelock', `The timelock delays operations by ${delaySeconds} seconds.`)]
  return [
    admin.wrong(
      'Timelock',
      `The timelock delays operations by ${delaySeconds} seconds; holders need at least ${MIN_TIMELOCK_DELAY_SECONDS} to leave.`,
      `ats admin call 'Timelock.updateDelay(172800)'`,
    ),
  ]
}

/** Judges whether the contracts verify signatures for this chain and for themselves. */
export const judgeDomains = ({ domains: facts, chainId }: DeploymentFacts): Finding[] =>
  facts.map(({ contract, address, domain }) => {
    if (domain === undefined)
      return domains.wrong(
        contract,
        `${contract} at ${address} has no EIP-712 domain, so no signature can be made for it.`,
        `correct ${contract} in CONTRACTS`,
      )
    if (domain.chainId !== BigInt(chainId) || domain.verifyingContract !== address)
      return domains.wrong(
        contract,
        `${contract} verifies signatures for ${domain.verifyingContract} on chain ${domain.chainId}, not for ${address} on chain ${chainId}.`,
        `correct ${contract} in CONTRACTS`,
      )
    return domains.ok(contract, `${contract} signs as ${domain.name} ${domain.version}.`)
  })
