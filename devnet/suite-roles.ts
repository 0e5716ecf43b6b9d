import {
  deployedRoles,
  type NamedContracts,
  type Power,
  type RoleName,
  roleHash,
} from '@agent-trading-service/protocol/roles-of-powers'
import { administeredContracts } from '@agent-trading-service/protocol/wiring'
import { type Address, encodeFunctionData, getAddress, type Hex, isAddressEqual, zeroAddress, zeroHash } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import type { Sender } from './sender.ts'
import type { ProtocolSuite, Suite, SuiteRoles } from './suite-config.ts'

export const DEFAULT_ADMIN_ROLE = zeroHash

/** A role of a contract, and the accounts that have it. */
export type RoleHolders = { contract: string; address: Address; name: RoleName; role: Hex; holders: Address[] }

/**
 * Returns the roles of all contracts except the timelock's, with their accounts; a role may have none. The order book
 * is an executor of the router.
 */
export function roleHolders(roles: SuiteRoles, suite: ProtocolSuite): RoleHolders[] {
  const { OrderBook } = suite.contracts
  const accounts = accountsByPower(roles)
  const executors = OrderBook ? [...accounts.executors, OrderBook] : accounts.executors
  return deployedRoles(suite).flatMap(({ power, contract, address, role }) => {
    if (contract === 'Timelock') return []
    const holders = power === 'executors' ? executors : accounts[power]
    return [{ contract, address, name: role, role: roleHash(role), holders }]
  })
}

/** Returns the accounts of each power. The treasury has none: it only receives. */
export const accountsByPower = (roles: SuiteRoles): Record<Power, Address[]> => ({
  'timelock.proposers': roles.timelock.proposers,
  'timelock.executors': roles.timelock.executors,
  guardians: roles.guardians,
  relayer: [roles.relayer],
  'operators.agentRegistry': roles.operators.agentRegistry,
  'operators.allocationManager': roles.operators.allocationManager,
  'operators.tokenRegistry': roles.operators.tokenRegistry,
  'operators.tradeRouter': roles.operators.tradeRouter,
  'operators.vaults': roles.operators.vaults,
  registrars: roles.registrars,
  executors: roles.executors,
  oracleUpdaters: roles.oracleUpdaters,
  oracleForcers: roles.oracleForcers,
})

/**
 * Returns the accounts of the powers that need keys of their own: all but the timelock's executors, who decide nothing.
 */
export const separatePowers = (roles: SuiteRoles): [power: string, accounts: Address[]][] =>
  Object.entries(accountsByPower(roles)).filter(([power]) => power !== 'timelock.executors')

/** Returns one sentence per account that holds more than one power. */
export function sharedKeys(roles: SuiteRoles): string[] {
  const held = new Map<Address, string[]>()
  for (const [power, accounts] of separatePowers(roles)) {
    for (const account of accounts.map(account => getAddress(account))) {
      held.set(account, [...(held.get(account) ?? []), power])
    }
  }
  return [...held]
    .filter(([, names]) => names.length > 1)
    .map(([account, names]) => `${account} holds ${names.join(' and ')}; give each power a key of its own`)
}

/** Every account that the configuration names. */
export function namedAccounts(roles: SuiteRoles): Address[] {
  const named = [...Object.values(accountsByPower(roles)).flat(), roles.treasury]
  return [...new Set(named.map(account => getAddress(account)))]
}

/** Every contract with a default admin, by name. */
export function administered({ contracts, vaults }: NamedContracts): [name: string, address: Address][] {
  const named = administeredContracts.flatMap((name): [string, Address][] => {
    const address = contracts[name]
    return address ? [[name, address]] : []
  })
  return [...named, ...Object.entries(vaults)]
}

type Call = { target: Address; data: Hex }

/** The timelock's powers: proposers and guardians cancel; without executors any account may execute. */
export const timelockRoles = ({
  timelock,
  guardians,
}: SuiteRoles): { name: string; role: Hex; holders: Address[] }[] => [
  { name: 'PROPOSER_ROLE', role: roleHash('PROPOSER_ROLE'), holders: timelock.proposers },
  {
    name: 'CANCELLER_ROLE',
    role: roleHash('CANCELLER_ROLE'),
    holders: [...new Set([...timelock.proposers, ...guardians])],
  },
  {
    name: 'EXECUTOR_ROLE',
    role: roleHash('EXECUTOR_ROLE'),
    holders: timelock.executors.length > 0 ? timelock.executors : [zeroAddress],
  },
]

/**
 * Makes the timelock the admin of every contract in place of the sender. The timelock was deployed without a delay and
 * with the sender as its proposer; its first operation accepts the contracts, appoints the configured proposers and
 * executors, dismisses the sender and sets the delay.
 */
export async function handOverToTimelock(sender: Sender, roles: SuiteRoles, suite: Suite): Promise<void> {
  const timelock = suite.contracts.Timelock
  const calls: Call[] = []
  for (const [, address] of administered(suite)) {
    const access = { abi: agentRegistryAbi, address }
    await sender.write({ ...access, functionName: 'beginDefaultAdminTransfer', args: [timelock] })
    calls.push({
      target: address,
      data: encodeFunctionData({ abi: agentRegistryAbi, functionName: 'acceptDefaultAdminTransfer' }),
    })
  }
  for (const { role, holders } of timelockRoles(roles)) {
    for (const account of holders) calls.push(onTimelock(timelock, 'grantRole', [role, account]))
    if (!holders.some(holder => isAddressEqual(holder, sender.address))) {
      calls.push(onTimelock(timelock, 'revokeRole', [role, sender.address]))
    }
  }
  calls.push(onTimelock(timelock, 'updateDelay', [roles.timelock.delaySeconds]))

  const batch = [calls.map(({ target }) => target), calls.map(() => 0n), calls.map(({ data }) => data)] as const
  const at = { address: timelock, abi: timelockAbi }
  await sender.write({ ...at, functionName: 'scheduleBatch', args: [...batch, zeroHash, zeroHash, 0n] })
  await sender.write({ ...at, functionName: 'executeBatch', args: [...batch, zeroHash, zeroHash] })
}

function onTimelock(
  target: Address,
  ...[functionName, args]: ['grantRole' | 'revokeRole', readonly [Hex, Address]] | ['updateDelay', readonly [bigint]]
): Call {
  const data =
    functionName === 'updateDelay'
      ? encodeFunctionData({ abi: timelockAbi, functionName, args })
      : encodeFunctionData({ abi: timelockAbi, functionName, args })
  return { target, data }
}
