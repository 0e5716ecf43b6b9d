import { encodeAbiParameters, encodeEventTopics } from 'viem'
import { expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { type Lock, locksThatHold, type Move, readRecord, resultOf } from '../../web/src/wallet/vault-record.ts'

const account = `0x${'Ab'.repeat(20)}` as const
const vault = `0x${'cd'.repeat(20)}`

it("the depositor's record reads its deposits, withdrawals and locks from the vault's log", async () => {
  const owner = account.toLowerCase() as `0x${string}`
  const topicsOf = {
    Deposit: encodeEventTopics({ abi: mandateVaultAbi, eventName: 'Deposit', args: { owner } }),
    Withdraw: encodeEventTopics({ abi: mandateVaultAbi, eventName: 'Withdraw', args: { owner } }),
    SharesLockedUntil: encodeEventTopics({ abi: mandateVaultAbi, eventName: 'SharesLockedUntil', args: { owner } }),
  }
  const log = (name: keyof typeof topicsOf, block: number, one: bigint, other: bigint) => ({
    blockNumber: `0x${block.toString(16)}`,
    logIndex: '0x0',
    transactionHash: `0x${block}`,
    topics: topicsOf[name],
    data: encodeAbiParameters([{ type: 'uint256' }, { type: 'uint256' }], [one, other]),
  })
  const logs = [log('Deposit', 9, 10n, 11n), log('Deposit', 30, 20n, 21n), log('Withdraw', 200, 5n, 6n)]
  const locks = [log('SharesLockedUntil', 9, 11n, 100n)]
  const provider = {
    async request({ params }: { params?: readonly unknown[] }) {
      const [{ address, topics }] = params as [{ address: string; topics: (string | null)[] }]
      expect(address).toBe(vault)
      const asked = JSON.stringify(topics)
      return [...logs, ...locks].filter(log => JSON.stringify(log.topics) === asked)
    },
  }
  const wallet = { id: 'w', rdns: 'w', name: 'Wallet', provider }
  const record = await readRecord({ wallet, address: account, chainId: 1 }, vault)
  expect(record.moves).toEqual([
    { kind: 'Withdrawal', usdc: 5n, shares: 6n, blockNumber: 200, hash: '0x200' },
    { kind: 'Deposit', usdc: 20n, shares: 21n, blockNumber: 30, hash: '0x30' },
    { kind: 'Deposit', usdc: 10n, shares: 11n, blockNumber: 9, hash: '0x9' },
  ])
  expect(record.locks).toEqual([{ shares: 11n, unlocksAt: 100 }])
})

it('the locks that hold are the newest that make up what the vault counts as locked', () => {
  const locks: Lock[] = [30, 20, 10].map(unlocksAt => ({ shares: 5n, unlocksAt }))
  expect(locksThatHold(locks, 0n)).toEqual([])
  expect(locksThatHold(locks, 10n).map(({ unlocksAt }) => unlocksAt)).toEqual([30, 20])
})

it("the depositor's profit counts what was withdrawn, and is unknown once shares moved in another way", () => {
  const move = (kind: Move['kind'], usdc: bigint, shares: bigint): Move => ({
    kind,
    usdc,
    shares,
    blockNumber: 1,
    hash: '0x1',
  })
  const moves = [move('Withdrawal', 40n, 30n), move('Deposit', 100n, 90n)]
  expect(resultOf(moves, { shares: 60n, worth: 70n })).toEqual({ deposited: 100n, withdrawn: 40n, profit: 10n })
  expect(resultOf(moves, { shares: 61n, worth: 70n }).profit).toBeUndefined()
})
