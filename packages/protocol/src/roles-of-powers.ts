import { type Address, type Hex, keccak256, stringToBytes } from 'viem'

/** The roles of the contracts, by the name that they have in Solidity. */
export type RoleName =
  | 'OPERATOR_ROLE'
  | 'GUARDIAN_ROLE'
  | 'REGISTRAR_ROLE'
  | 'EXECUTOR_ROLE'
  | 'ORACLE_UPDATER_ROLE'
  | 'ORACLE_FORCER_ROLE'
  | 'PROPOSER_ROLE'
  | 'CANCELLER_ROLE'

/** A role of a contract; of every vault for the contract `vaults`. */
type PowerRole = { contract: string; role: RoleName }

const role = (contract: string, name: RoleName): PowerRole => ({ contract, role: name })

/**
 * What a key may do, by its name in the configuration of a deployment, as the roles that make it up. The relayer has no
 * role: FeeManager names it.
 */
export const powers = {
  'timelock.proposers': [role('Timelock', 'PROPOSER_ROLE'), role('Timelock', 'CANCELLER_ROLE')],
  'timelock.executors': [role('Timelock', 'EXECUTOR_ROLE')],
  guardians: [
    role('AgentRegistry', 'GUARDIAN_ROLE'),
    role('vaults', 'GUARDIAN_ROLE'),
    role('Timelock', 'CANCELLER_ROLE'),
  ],
  relayer: [],
  'operators.agentRegistry': [role('AgentRegistry', 'OPERATOR_ROLE')],
  'operators.allocationManager': [role('AllocationManager', 'OPERATOR_ROLE')],
  'operators.tokenRegistry': [role('TokenRegistry', 'OPERATOR_ROLE')],
  'operators.tradeRouter': [role('TradeRouter', 'OPERATOR_ROLE')],
  'operators.vaults': [role('vaults', 'OPERATOR_ROLE')],
  registrars: [role('AgentRegistry', 'REGISTRAR_ROLE')],
  executors: [role('TradeRouter', 'EXECUTOR_ROLE')],
  oracleUpdaters: [role('PriceOracle', 'ORACLE_UPDATER_ROLE')],
  oracleForcers: [role('PriceOracle', 'ORACLE_FORCER_ROLE')],
} satisfies Record<string, PowerRole[]>

/**
 * The least delay of an admin's changes, six days. Markets close for up to five days, and with them redemptions: who
 * disagrees with a change must be able to leave before it happens.
 */
export const MIN_TIMELOCK_DELAY_SECONDS = 518_400n

/**
 * How many accounts besides the proposers must be able to cancel. A stolen proposer's key can dismiss one of them,
 * which cannot cancel that; the other can.
 */
export const MIN_GUARDIANS = 2

export type Power = keyof typeof powers

export const powerNames = Object.keys(powers) as Power[]

/** Returns the hash by which a contract knows a role. */
export const roleHash = (name: RoleName): Hex => keccak256(stringToBytes(name))

/** The contracts of a deployment by name, and its vaults by slug. */
export type NamedContracts = { contracts: Partial<Record<string, Address>>; vaults: Record<string, Address> }

/** A role of one contract that is deployed. */
type DeployedRole = { power: Power; contract: string; address: Address; role: RoleName }

/** Returns every role of every deployed contract, with the power that it belongs to. */
export function deployedRoles({ contracts, vaults }: NamedContracts): DeployedRole[] {
  return powerNames.flatMap(power =>
    powers[power].flatMap(({ contract, role }: PowerRole) => {
      const places = contract === 'vaults' ? Object.entries(vaults) : [[contract, contracts[contract]] as const]
      return places.flatMap(([name, address]) => (address ? [{ power, contract: name, address, role }] : []))
    }),
  )
}
