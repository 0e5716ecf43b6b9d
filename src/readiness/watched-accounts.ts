import type { Address } from 'viem'
import { multicall3Abi } from '../../contracts-abi/multicall3.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { call, type ValuesOf } from '../chain/read-tree.ts'

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
