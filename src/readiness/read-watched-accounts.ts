import { type Address, hexToBigInt } from 'viem'
import { multicall3Abi } from '../../contracts-abi/multicall3.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { call, readTree } from '../chain/read-tree.ts'
import { blockRequest } from '../rpc/requests.ts'

/** An account of the operator's, and how many transactions its ether pays for. */
type WatchedAccount = { name: string; address: Address; transactions: number }

/** The gas of a typical transaction of an operator, such as a pause of every vault. */
const TYPICAL_GAS = 500_000n
/** More is not worth telling apart; a chain without fees has as many. */
const MAX_TRANSACTIONS = 1_000_000n

/** Reads how many transactions the watched accounts can pay for at the present gas price. Throws CHAIN_UNREACHABLE. */
export async function readWatchedAccounts(
  chain: Chain,
  accounts: Readonly<Record<string, Address>>,
  priorityFeeWei: bigint,
): Promise<WatchedAccount[]> {
  const named = Object.entries(accounts)
  if (named.length === 0) return []
  const multicall = { address: chain.contracts.Multicall3, abi: multicall3Abi }
  const [{ values }, head] = await Promise.all([
    readTree(
      chain,
      named.map(([, address]) => call(multicall, 'getEthBalance', [address])),
    ),
    chain.rpc.read(blockRequest('latest')),
  ])
  const gasPrice = hexToBigInt(head?.baseFeePerGas ?? '0x0') + priorityFeeWei
  return named.map(([name, address], index) => {
    const transactions = gasPrice === 0n ? MAX_TRANSACTIONS : (values[index] ?? 0n) / (TYPICAL_GAS * gasPrice)
    return { name, address, transactions: Number(transactions < MAX_TRANSACTIONS ? transactions : MAX_TRANSACTIONS) }
  })
}
