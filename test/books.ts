import { type Address, erc20Abi, parseAbiItem } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { connect } from '../devnet/sender.ts'
import { chain } from './actors.ts'
import { deployment } from './surfaces.ts'

const { accounts, contracts, rpcUrl, chainId } = deployment
const client = connect(rpcUrl, chainId)
const usdc = { address: contracts.USDC, abi: usdcTokenAbi } as const
const feeManager = { address: contracts.FeeManager, abi: feeManagerAbi } as const

const authorizationUsed = parseAbiItem('event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)')
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
 * What the chain says of fees and registrations from now on: every payment that was used, and every registration that
 * was relayed as prepaid. No registration is without a payment, and the treasury has got the fee as often as it was paid.
 */
export async function openBooks() {
  const fromBlock = (await client.getBlockNumber()) + 1n
  const fee = await client.readContract({ ...feeManager, functionName: 'getRegistrationFee' })
  const treasury = await client.readContract({ ...feeManager, functionName: 'treasury' })
  const before = await balanceOf(treasury)
  const count = async () => {
    const toBlock = await client.getBlockNumber()
    if (toBlock < fromBlock) return { payments: 0, registrations: 0 }
    const [used, prepaid] = await Promise.all([
      client.getLogs({ address: contracts.USDC, event: authorizationUsed, fromBlock, toBlock }),
      client.getLogs({ address: contracts.FeeManager, event: registrationFeePrepaid, fromBlock, toBlock }),
    ])
    return { payments: used.length, registrations: prepaid.length }
  }
  return {
    fee,
    async expect(expected: { payments: number; registrations: number }) {
      expect(await count()).toEqual(expected)
    },
    async balance() {
      const { payments, registrations } = await count()
      expect(registrations, 'no registration is free').toBeLessThanOrEqual(payments)
      expect((await balanceOf(treasury)) - before, 'every payment reached the treasury').toBe(fee * BigInt(payments))
    },
  }
}
