import { type Address, keccak256, stringToBytes } from 'viem'
import type { Chain } from './configured-chain.ts'
import { feeManager, priceOracle, tradeRouter } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

const EXECUTOR_ROLE = keccak256(stringToBytes('EXECUTOR_ROLE'))
const ORACLE_UPDATER_ROLE = keccak256(stringToBytes('ORACLE_UPDATER_ROLE'))

/** Accounts of the service by what they are for. */
type ServiceAccounts = Record<'executors' | 'relayers' | 'updaters', readonly Address[]>

/** Returns the accounts that the contracts do not let do what they are for. Throws CHAIN_UNREACHABLE. */
export async function accountsWithoutRole(chain: Chain, accounts: ServiceAccounts): Promise<ServiceAccounts> {
  const { trading } = chain
  const router = trading && tradeRouter({ ...chain, trading })
  const { values } = await readTree(chain, {
    relayer: optional(call(feeManager(chain), 'registrationFeeRelayer', [])),
    executors: (router ? accounts.executors : []).map(address => ({
      address,
      hasRole: router && optional(call(router, 'hasRole', [EXECUTOR_ROLE, address])),
    })),
    updaters: accounts.updaters.map(address => ({
      address,
      hasRole: optional(call(priceOracle(chain), 'hasRole', [ORACLE_UPDATER_ROLE, address])),
    })),
  })
  const withoutRole = (entries: readonly { address: Address; hasRole: boolean | undefined }[]) =>
    entries.flatMap(({ address, hasRole }) => (hasRole === false ? [address] : []))
  return {
    executors: withoutRole(values.executors),
    updaters: withoutRole(values.updaters),
    relayers: accounts.relayers.filter(address => values.relayer !== undefined && values.relayer !== address),
  }
}
