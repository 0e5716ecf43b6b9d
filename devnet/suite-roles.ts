import {
  type Address,
  encodeFunctionData,
  getAddress,
  type Hex,
  isAddressEqual,
  keccak256,
  stringToHex,
  zeroAddress,
  zeroHash,
} from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import type { Sender } from './sender.ts'
import type { ProtocolContracts, ProtocolSuite, Suite, SuiteRoles } from './suite-config.ts'

export const DEFAULT_ADMIN_ROLE = zeroHash

const roleHash = (name: string) => keccak256(stringToHex(name))

/** The roles of a contract by the name that they have in Solidity. */
export type RoleName =
  | 'OPERATOR_ROLE'
  | 'GUARDIAN_ROLE'
  | 'REGISTRAR_ROLE'
  | 'EXECUTOR_ROLE'
  | 'ORACLE_UPDATER_ROLE'
  | 'ORACLE_FORCER_ROLE'

/** A role of a contract, and the accounts that have it. */
export type RoleHolders = { contract: string; address: Address; name: RoleName; role: Hex; holders: Address[] }

/** Returns the roles of all contracts with their accounts; a role may have none. */
export function roleHolders(
  roles: SuiteRoles,
  { contracts, vaults }: { contracts: ProtocolContracts; vaults: Record<string, Address> },
): RoleHolders[] {
  const { operators, guardians } = roles
  const at =
    (contract: string, address: Address) =>
    (name: RoleName, holders: Address[]): RoleHolders => ({ contract, address, name, role: roleHash(name), holders })
  const registry = at('AgentRegistry', contracts.AgentRegistry)
  const router = at('TradeRouter', contracts.TradeRouter)
  const oracle = at('PriceOracle', contracts.PriceOracle)
  return [
    registry('OPERATOR_ROLE', operators.agentRegistry),
    registry('REGISTRAR_ROLE', roles.registrars),
    registry('GUARDIAN_ROLE', guardians),
    at('AllocationManager', contracts.AllocationManager)('OPERATOR_ROLE', operators.allocationManager),
    at('TokenRegistry', contracts.TokenRegistry)('OPERATOR_ROLE', operators.tokenRegistry),
    router('OPERATOR_ROLE', operators.tradeRouter),
    router('EXECUTOR_ROLE', roles.executors),
    oracle('ORACLE_UPDATER_ROLE', roles.oracleUpdaters),
    oracle('ORACLE_FORCER_ROLE', roles.oracleForcers),
    ...Object.entries(vaults).flatMap(([slug, address]) => [
      at(slug, address)('OPERATOR_ROLE', operators.vaults),
      at(slug, address)('GUARDIAN_ROLE', guardians),
    ]),
  ]
}

/** Returns the accounts of each power. The treasury is none: it only receives. */
export function powers(roles: SuiteRoles): Record<string, Address[]> {
  return {
    'timelock.proposers': roles.timelock.proposers,
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
  }
}

/** Returns one sentence per account that holds more than one power. */
export function sharedKeys(roles: SuiteRoles): string[] {
  const held = new Map<Address, string[]>()
  for (const [power, accounts] of Object.entries(powers(roles))) {
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
  const named = [...Object.values(powers(roles)).flat(), ...roles.timelock.executors, roles.treasury]
  return [...new Set(named.map(account => getAddress(account)))]
}

/** The contracts with a default admin; vaults have one too. */
export const administeredNames = [
  'AgentRegistry',
  'VaultTrackRegistry',
  'AllocationManager',
  'FeeManager',
  'TokenRegistry',
  'PriceOracle',
  'PositionManager',
  'TradeRouter',
  'TradePolicy',
  'SwapAdapter',
] as const

/** Every contract with a default admin, by name. */
export function administered({ contracts, vaults }: ProtocolSuite): [name: string, address: Address][] {
  const named = administeredNames.flatMap((name): [string, Address][] => {
    const address = contracts[name]
    return address ? [[name, address]] : []
  })
  return [...named, ...Object.entries(vaults)]
}

type Call = { target: Address; data: Hex }

/** What the timelock lets happen: proposers also cancel; without executors anybody may execute. */
export const timelockRoles = ({ timelock }: SuiteRoles): { name: string; role: Hex; holders: Address[] }[] => [
  { name: 'PROPOSER_ROLE', role: roleHash('PROPOSER_ROLE'), holders: timelock.proposers },
  { name: 'CANCELLER_ROLE', role: roleHash('CANCELLER_ROLE'), holders: timelock.proposers },
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
