import { CapitalMode, Track } from '@agent-trading-service/protocol/enums'
import { type Address, keccak256, stringToBytes } from 'viem'
import { multicall3Abi } from '../../contracts-abi/multicall3.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { feeManager, priceOracle, tradeRouter, vaultTrackRegistry } from '../chain/contracts.ts'
import { call, optional, type ValuesOf } from '../chain/read-tree.ts'

// What readiness reads in one call: who may do what, what tracks trade, and what pays for an operator's transactions.

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

export const capitalModeCalls = (chain: Chain) =>
  Object.values(chain.vaults).map(vault => ({
    vault,
    modes: Object.values(Track).map(track =>
      optional(call(vaultTrackRegistry(chain), 'capitalModeOf', [vault, BigInt(track)])),
    ),
  }))

/** Returns the vaults in which a track trades simulated capital, from the values of `capitalModeCalls`. */
export const vaultsWithSimulatedCapital = (
  values: ValuesOf<ReturnType<typeof capitalModeCalls>>,
): ReadonlySet<Address> =>
  new Set(values.flatMap(({ vault, modes }) => (modes.includes(CapitalMode.Simulated) ? [vault] : [])))

/** An account of the operator's, and how many transactions its ether pays for. */
type WatchedAccount = { name: string; address: Address; transactions: number }

/** The gas of a typical transaction of an operator, such as a pause of every vault. */
const TYPICAL_GAS = 500_000n
/** More is not worth telling apart; a chain without fees has as many. */
const MAX_TRANSACTIONS = 1_000_000n

export function watchedAccountCalls({ contracts }: Chain, accounts: Readonly<Record<string, Address>>) {
  const multicall = { address: contracts.Multicall3, abi: multicall3Abi }
  return Object.entries(accounts).map(([name, address]) => ({
    name,
    address,
    balance: call(multicall, 'getEthBalance', [address]),
  }))
}

/** Returns how many transactions the accounts can pay for, from the values of `watchedAccountCalls`. */
export const toWatchedAccounts = (
  accounts: ValuesOf<ReturnType<typeof watchedAccountCalls>>,
  gasPriceWei: bigint,
): WatchedAccount[] =>
  accounts.map(({ name, address, balance }) => {
    const transactions = gasPriceWei === 0n ? MAX_TRANSACTIONS : balance / (TYPICAL_GAS * gasPriceWei)
    return { name, address, transactions: Number(transactions < MAX_TRANSACTIONS ? transactions : MAX_TRANSACTIONS) }
  })
