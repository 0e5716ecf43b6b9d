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

/** A fresh account with USDC to pay with: the price of five registrations. */
export async function purse(amount = 5_000_000n): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.send(accounts.admin, { ...usdc, functionName: 'mint', args: [account.address, amount] })
  return account
}

export type Books = Awaited<ReturnType<typeof openBooks>>

/**
 * What the chain says of fees and registrations from now on: every transfer to the treasury, and every registration that
 * was relayed as prepaid.
 */
export async function openBooks() {
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
    /** No registration was free, and nobody paid anything but whole fees. */
    async balance() {
      const { payments, registrations } = await count()
      expect(registrations, 'registrations that nobody paid for').toBeLessThanOrEqual(payments)
      expect((await balanceOf(treasury)) - before, 'what the treasury got').toBe(fee * BigInt(payments))
    },
  }
}
