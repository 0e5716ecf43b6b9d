import { deployedRoles, type Power, powers } from '@agent-trading-service/protocol/roles-of-powers'
import type { Address } from 'viem'
import type { AccountPurpose, DeploymentFacts, ServiceAccount } from './deployment-facts.ts'
import { type Finding, findingsOf } from './finding.ts'

const roles = findingsOf('role')
const balances = findingsOf('balance')

/** The power that an account of each purpose needs; a keeper and a reporter need none. */
const neededPower: Record<AccountPurpose, Power | undefined> = {
  executor: 'executors',
  relayer: 'relayer',
  updater: 'oracleUpdaters',
  keeper: undefined,
  reporter: undefined,
}

/** Judges the roles of the service's accounts: each has the one that it needs, and no other. */
export function judgeRoles(
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
  for (const { power, text } of surplus) byPower.set(power, [...(byPower.get(power) ?? []), text])
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

/** What an account has and uses. `weiPerDay` is undefined if its use is not known. */
export type BalanceFact = ServiceAccount & { wei: bigint; gasPriceWei: bigint; weiPerDay: bigint | undefined }

/** The gas of a typical transaction. */
const TYPICAL_GAS = 500_000n
const MIN_TRANSACTIONS = 100n
const MIN_DAYS = 7n

/** Judges whether the accounts can pay for gas, and for how long at their present use. */
export const judgeBalances = (facts: readonly BalanceFact[]): Finding[] =>
  facts.map(({ address, purpose, wei, gasPriceWei, weiPerDay }) => {
    const fix = `send ether to ${address}`
    const transactions = gasPriceWei === 0n ? MIN_TRANSACTIONS : wei / (TYPICAL_GAS * gasPriceWei)
    const days = weiPerDay === undefined || weiPerDay === 0n ? undefined : wei / weiPerDay
    const left = `${ether(wei)} ETH, ${transactions} transactions at the present gas price${days === undefined ? '' : `, ${days} days at the present use`}`
    if (wei === 0n) return balances.wrong(address, `The ${purpose} ${address} has no ether and can send nothing.`, fix)
    if (transactions < 1n)
      return balances.wrong(address, `The ${purpose} ${address} cannot pay for a transaction: it has ${left}.`, fix)
    if (transactions < MIN_TRANSACTIONS || (days !== undefined && days < MIN_DAYS))
      return balances.warning(address, `The ${purpose} ${address} soon runs out: it has ${left}.`, fix)
    return balances.ok(address, `The ${purpose} ${address} has ${left}.`)
  })

/** Returns ether with four decimals. */
const ether = (wei: bigint): string => (Number(wei / 10n ** 10n) / 1e8).toFixed(4)

/** A role and an account that has it. */
export type RoleHolder = { contract: string; role: string; power: Power; account: Address }

/** Judges whether one account holds two powers. On the embedded chain one may. */
export function judgeSharedPowers(holders: readonly RoleHolder[], isEmbedded: boolean): Finding[] {
  if (isEmbedded) return []
  const held = new Map<Address, Set<Power>>()
  for (const { account, power } of holders) held.set(account, (held.get(account) ?? new Set()).add(power))
  return [...held].map(([account, own]) => {
    const names = [...own]
    return names.length === 1
      ? roles.ok(account, `${account} holds ${names[0]} and nothing else.`)
      : roles.warning(
          account,
          `${account} holds ${names.join(' and ')}: a thief of this key has all of them.`,
          `ats admin rotate ${names.at(-1)} --from-account ${account} --to <new account>`,
        )
  })
}
