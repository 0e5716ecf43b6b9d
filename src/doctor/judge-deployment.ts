import type { AccountPurpose, DeploymentFacts, ServiceAccount } from '@agent-trading-service/protocol/deployment-facts'
import { durationText } from '@agent-trading-service/protocol/duration'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import { publicChain } from '@agent-trading-service/protocol/known-chain'
import {
  deployedRoles,
  MIN_TIMELOCK_DELAY_SECONDS,
  type Power,
  powers,
} from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, domainSeparator, zeroAddress } from 'viem'
import { judgePolicies } from './judge-limits.ts'

const wiring = findingsOf('wiring')
const admin = findingsOf('admin')
const roles = findingsOf('role')
const fees = findingsOf('fee')
const domains = findingsOf('signing domain')

/** The power that an account of each purpose needs; a keeper and a reporter need none. */
const neededPower: Record<AccountPurpose, Power | undefined> = {
  executor: 'executors',
  relayer: 'relayer',
  updater: 'oracleUpdaters',
  keeper: undefined,
  reporter: undefined,
}

/** How fees are paid over x402 on the deployment's own chain. */
type FeePayment = { assetName: string; assetVersion: string; asset: Address | undefined }

/** Judges how a deployment is set up: everything that changes only by an operator's action. */
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
    ...judgeOrderBook(facts),
    ...judgeAdmins(facts, isEmbedded),
    ...judgeRoles(facts, accounts),
    ...judgeFee(facts, payment, isEmbedded),
    ...judgeDomains(facts),
    ...judgePolicies(facts, isEmbedded),
  ]
}

/** Judges whether each contract names the ones it must. */
const judgeWiring = ({ wiring: facts }: DeploymentFacts): Finding[] =>
  facts.map(({ contract, getter, target, expected, actual, correction }) => {
    const subject = `${contract}.${getter}`
    if (actual === expected) return wiring.ok(subject, `${subject} is ${target}.`)
    const fix = correction
      ? `ats admin call '${correction}'`
      : `${contract} cannot be changed: correct its address, or that of ${target}, in CONTRACTS.`
    if (actual === undefined) return wiring.wrong(subject, `${contract} has no ${getter}.`, fix)
    return wiring.wrong(subject, `${subject} is ${actual}, not ${target} (${expected}).`, fix)
  })

/** Judges whether orders are placed and executed. Wiring judges whether the book is this deployment's. */
function judgeOrderBook({ orderBook }: DeploymentFacts): Finding[] {
  if (orderBook === undefined) return []
  const { address, isExecutor } = orderBook
  if (address === zeroAddress)
    return [
      wiring.warning(
        'OrderBook',
        'AgentRegistry names no order book, so agents place no orders.',
        `ats admin call 'AgentRegistry.setOrderBook("<contract>")'`,
      ),
    ]
  if (isExecutor) return [roles.ok(address, `The order book ${address} has its role.`)]
  return [
    roles.wrong(
      address,
      `The order book ${address} lacks EXECUTOR_ROLE of TradeRouter, so no order executes.`,
      `ats admin grant executors ${address}`,
    ),
  ]
}

/** Judges who administers the contracts. The embedded chain needs no delay. */
function judgeAdmins({ admins, timelock }: DeploymentFacts, isEmbedded: boolean): Finding[] {
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
    return [admin.ok('Timelock', `The timelock delays operations by ${durationText(delaySeconds)}.`)]
  return [
    admin.wrong(
      'Timelock',
      `The timelock delays operations by ${durationText(delaySeconds)}; holders need at least ${durationText(MIN_TIMELOCK_DELAY_SECONDS)} to leave.`,
      `ats admin call 'Timelock.updateDelay(${MIN_TIMELOCK_DELAY_SECONDS})'`,
    ),
  ]
}

/** Judges whether the contracts verify signatures for this chain and for themselves. */
const judgeDomains = ({ domains: facts, chainId }: DeploymentFacts): Finding[] =>
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

/** Judges the roles of the service's accounts: each has the one that it needs, and no other. */
function judgeRoles(
  facts: Pick<DeploymentFacts, 'roles' | 'fee' | 'contracts' | 'vaults'>,
  accounts: readonly ServiceAccount[],
): Finding[] {
  return accounts.flatMap(account => [...judgeNeeded(facts, account), ...judgeSurplus(facts, account, accounts)])
}

function judgeNeeded(
  { roles: held, fee }: Pick<DeploymentFacts, 'roles' | 'fee'>,
  { address, purpose }: ServiceAccount,
): Finding[] {
  const power = neededPower[purpose]
  if (power === undefined) return []
  if (power === 'relayer') {
    if (fee === undefined || fee.relayer === address)
      return [roles.ok(address, `FeeManager names the relayer ${address}.`)]
    return [
      roles.wrong(
        address,
        `The relayer ${address} is not the one that FeeManager names, ${fee.relayer}, so it cannot register agents as prepaid.`,
        `ats admin grant relayer ${address}`,
      ),
    ]
  }
  const missing = powers[power].filter(
    ({ contract, role }) =>
      !held.some(fact => fact.address === address && fact.contract === contract && fact.role === role),
  )
  if (missing.length === 0) return [roles.ok(address, `The ${purpose} ${address} has its role.`)]
  return missing.map(({ contract, role }) =>
    roles.wrong(
      address,
      `The ${purpose} ${address} lacks ${role} of ${contract}.`,
      `ats admin grant ${power} ${address}`,
    ),
  )
}

function judgeSurplus(
  { roles: held, fee, contracts, vaults }: Pick<DeploymentFacts, 'roles' | 'fee' | 'contracts' | 'vaults'>,
  { address, purpose }: ServiceAccount,
  accounts: readonly ServiceAccount[],
): Finding[] {
  const purposes = accounts.filter(account => account.address === address).map(account => account.purpose)
  const needed = new Set(purposes.map(each => neededPower[each]))
  const powerOf = ({ contract, role }: { contract: string; role: string }) =>
    deployedRoles({ contracts, vaults }).find(each => each.contract === contract && each.role === role)?.power
  const surplus = held.flatMap(fact => {
    const power = powerOf(fact)
    return fact.address === address && fact.purpose === purpose && power !== undefined && !needed.has(power)
      ? [{ power, text: `${fact.role} of ${fact.contract}` }]
      : []
  })
  const byPower = new Map<Power, string[]>()
  for (const { power, text } of surplus) byPower.set(power, [...new Set([...(byPower.get(power) ?? []), text])])
  const found = [...byPower].map(([power, texts]) =>
    roles.wrong(
      address,
      `The ${purpose} ${address} also has ${texts.join(', ')}, which it does not need.`,
      `ats admin revoke ${power} ${address}`,
    ),
  )
  if (fee?.relayer === address && !needed.has('relayer'))
    found.push(
      roles.wrong(
        address,
        `The ${purpose} ${address} is also the relayer that FeeManager names.`,
        'ats admin grant relayer <account of RELAYER_PRIVATE_KEY>',
      ),
    )
  const [first, ...others] = purposes
  if (first === purpose && others.length > 0)
    found.push(
      roles.warning(
        address,
        `One key serves as ${purposes.join(' and ')}: two lanes would compete for its nonces.`,
        'give each purpose a key of its own',
      ),
    )
  return found
}

/** Judges the registration fee, and whether payers can sign for its asset. `payment` is undefined without x402. */
function judgeFee(
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
      publicChain(chainId)?.dollar.address === asset
        ? 'remove X402_ASSET_NAME and X402_ASSET_VERSION: docs/chains.md has them'
        : `set X402_ASSET_NAME and X402_ASSET_VERSION to those of ${asset}`,
    ),
  ]
}
