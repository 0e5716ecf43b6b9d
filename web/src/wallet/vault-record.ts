import { type Hex, toEventSelector } from 'viem'
import type { Connected } from './provider.ts'

// What the vault's log says of an account. Amounts are base units of USDC and of shares.

export type Move = { kind: 'Deposit' | 'Withdrawal'; usdc: bigint; shares: bigint; blockNumber: number; hash: Hex }
/** Shares that neither redeem nor move until a time in Unix seconds. */
export type Lock = { shares: bigint; unlocksAt: number }
/** Both lists are newest first. */
export type VaultRecord = { moves: Move[]; locks: Lock[] }

const DEPOSIT = toEventSelector('Deposit(address,address,uint256,uint256)')
const WITHDRAW = toEventSelector('Withdraw(address,address,address,uint256,uint256)')
const LOCK = toEventSelector('SharesLockedUntil(address,uint256,uint256)')

type Log = { blockNumber: Hex; logIndex: Hex; transactionHash: Hex; data: Hex; topics: Hex[] }

/** Reads the deposits, withdrawals and locks of the wallet's account through the wallet's node. */
export async function readRecord({ wallet, address }: Connected, vault: string): Promise<VaultRecord> {
  const account = `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
  const logsOf = async (...topics: (string | null)[]) => {
    const filter = { address: vault, fromBlock: 'earliest', toBlock: 'latest', topics }
    return (await wallet.provider.request({ method: 'eth_getLogs', params: [filter] })) as Log[]
  }
  // Whoever pays or receives: the shares are the account's.
  const logs = await Promise.all([
    logsOf(DEPOSIT, null, account),
    logsOf(WITHDRAW, null, null, account),
    logsOf(LOCK, account),
  ])
  const [deposits, withdrawals, locks] = logs.map(list => list.sort(newestFirst)) as [Log[], Log[], Log[]]
  return {
    moves: [...deposits, ...withdrawals].sort(newestFirst).map(log => ({
      kind: log.topics[0] === DEPOSIT ? 'Deposit' : 'Withdrawal',
      usdc: wordOf(log, 0),
      shares: wordOf(log, 1),
      blockNumber: Number(log.blockNumber),
      hash: log.transactionHash,
    })),
    locks: locks.map(log => ({ shares: wordOf(log, 0), unlocksAt: Number(wordOf(log, 1)) })),
  }
}

const newestFirst = (one: Log, other: Log) =>
  Number(other.blockNumber) - Number(one.blockNumber) || Number(other.logIndex) - Number(one.logIndex)

const wordOf = ({ data }: Log, index: number) => BigInt(`0x${data.slice(2 + index * 64, 66 + index * 64)}`)

/** Returns the locks that hold now: the newest ones that make up what the vault counts as locked. */
export function locksThatHold(locks: readonly Lock[], lockedShares: bigint): Lock[] {
  const holding: Lock[] = []
  let rest = lockedShares
  for (const lock of locks) {
    if (rest <= 0n) break
    holding.push(lock)
    rest -= lock.shares
  }
  return holding
}

/** What an account has paid in and got back, and its profit; no profit if shares also came or went in another way. */
export function resultOf(moves: readonly Move[], { shares, worth }: { shares: bigint; worth: bigint }) {
  const sum = (kind: Move['kind'], unit: 'usdc' | 'shares') =>
    moves.reduce((total, move) => (move.kind === kind ? total + move[unit] : total), 0n)
  const deposited = sum('Deposit', 'usdc')
  const withdrawn = sum('Withdrawal', 'usdc')
  const isComplete = sum('Deposit', 'shares') - sum('Withdrawal', 'shares') === shares
  return { deposited, withdrawn, profit: isComplete ? worth + withdrawn - deposited : undefined }
}
