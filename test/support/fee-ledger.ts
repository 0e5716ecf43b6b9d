import { type Address, erc20Abi, parseAbiItem } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { connect } from '../../devnet/sender.ts'
import { chain } from './actors.ts'
import { deployment } from './surfaces.ts'

const { accounts, contracts, rpcUrl, chainId } = deployment
const client = connect(rpcUrl, chainId)
const usdc = { address: contracts.USDC, abi: usdcTokenAbi } as const
const feeManager = { address: contracts.FeeManager, abi: feeManagerAbi } as const

const transfer = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
const registrationFeePrepaid = parseAbiItem('event RegistrationFeePrepaid(uint256 indexed agentId, uint256 amount)')

export const balanceOf = (owner: Address) =>
  client.readContract({ address: contracts.USDC, abi: erc20Abi, functionName: 'balanceOf', args: [owner] })

/** Returns a new account with USDC for five registrations. */
export async function fundedPayer(amount = 5_000_000n): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.send(accounts.admin, { ...usdc, functionName: 'mint', args: [account.address, amount] })
  return account
}

export type FeeLedger = Awaited<ReturnType<typeof openFeeLedger>>

/** Counts fees and prepaid registrations on the chain from now on. A fee is a transfer to the treasury. */
export async function openFeeLedger() {
  const fromBlock = (await client.getBlockNumber()) + 1n
  const fee = await client.readContract({ ...feeManager, functionName: 'getRegistrationFee' })
  const treasury = await client.readContract({ ...feeManager, functionName: 'treasury' })
  const before = await balanceOf(treasury)
  const count = async () => {
    const toBlock = await client.getBlockNumber()
    if (toBlock < fromBlock) return { payments: 0, registrations: 0 }
    const [paid, prepaid] = await Promise.all([
      client.getLogs({ address: contracts.USDC, event: transfer, args: { to: treasury }, fromBlock, toBlock }),
      client.getLogs({ address: contracts.FeeManager, event: registrationFeePrepaid, fromBlock, toBlock }),
    ])
    return { payments: paid.length, registrations: prepaid.length }
  }
  return {
    fee,
    async expect(expected: { payments: number; registrations: number }) {
      expect(await count()).toEqual(expected)
    },
    /** Expects that each registration was paid for and that every transfer was one whole fee. */
    async expectBalanced() {
      const { payments, registrations } = await count()
      expect(registrations, 'registrations without a payment').toBeLessThanOrEqual(payments)
      expect((await balanceOf(treasury)) - before, 'received by the treasury').toBe(fee * BigInt(payments))
    },
  }
}
