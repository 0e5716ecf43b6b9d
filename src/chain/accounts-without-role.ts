import { type Address, keccak256, stringToBytes } from 'viem'
import type { Chain } from './configured-chain.ts'
import { feeManager, priceOracle, tradeRouter } from './contracts.ts'
import { call, optional, type ValuesOf } from './read-tree.ts'

const EXECUTOR_ROLE = keccak256(stringToBytes('EXECUTOR_ROLE'))
const ORACLE_UPDATER_ROLE = keccak256(stringToBytes('ORACLE_UPDATER_ROLE'))

/** Accounts of the service by what they are for. */
type ServiceAccounts = Record<'executors' | 'relayers' | 'updaters', readonly Address[]>

export function roleCalls(chain: Chain, { executors, updaters }: ServiceAccounts) {
  const { trading } = chain
  const router = trading && tradeRouter({ ...chain, trading })
  return {
    relayer: optional(call(feeManager(chain), 'registrationFeeRelayer', [])),
    executors: (router ? executors : []).map(address => ({
      address,
      hasRole: router && optional(call(router, 'hasRole', [EXECUTOR_ROLE, address])),
    })),
    updaters: updaters.map(address => ({
      address,
      hasRole: optional(call(priceOracle(chain), 'hasRole', [ORACLE_UPDATER_ROLE, address])),
    })),
  }
}

/** Returns the accounts that the contracts do not let do what they are for, from the values of `roleCalls`. */
export function accountsWithoutRole(
  { relayers }: ServiceAccounts,
  { relayer, executors, updaters }: ValuesOf<ReturnType<typeof roleCalls>>,
): ServiceAccounts {
  const withoutRole = (entries: readonly { address: Address; hasRole: boolean | undefined }[]) =>
    entries.flatMap(({ address, hasRole }) => (hasRole === false ? [address] : []))
  return {
    executors: withoutRole(executors),
    updaters: withoutRole(updaters),
    relayers: relayers.filter(address => relayer !== undefined && relayer !== address),
  }
}
