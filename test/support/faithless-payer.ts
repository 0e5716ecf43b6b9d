import { type Address, pad } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { vi } from 'vitest'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { connect } from '../../devnet/sender.ts'
import { chain } from './actors.ts'
import { FAITHLESS_CODE } from './faithless-code.ts'
import { deployment } from './surfaces.ts'

const { accounts, contracts, rpcUrl, chainId } = deployment
const client = connect(rpcUrl, chainId)
const rpc = (method: string, ...params: unknown[]) => client.request({ method, params } as never)

/** Returns the address of a new contract account with USDC for one registration. */
export async function faithlessPayer(): Promise<Address> {
  const address = privateKeyToAddress(generatePrivateKey())
  await rpc('anvil_setCode', address, FAITHLESS_CODE)
  await chain.send(accounts.admin, {
    address: contracts.USDC,
    abi: usdcTokenAbi,
    functionName: 'mint',
    args: [address, 1_000_000n],
  })
  return address
}

/**
 * Makes the payer reject its own signature as soon as the service sends a transaction, after it has verified and
 * simulated the payment. Each call starts with an honest payer.
 */
export async function turnWhenSent(payer: Address): Promise<void> {
  vi.restoreAllMocks()
  const { fetch } = globalThis
  const setFaithless = (isFaithless: boolean) =>
    rpc('anvil_setStorageAt', payer, pad('0x0'), pad(isFaithless ? '0x1' : '0x0'))
  await setFaithless(false)
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    if (`${init?.body}`.includes('eth_sendRawTransaction')) await setFaithless(true)
    return fetch(input, init)
  })
}

/** Returns the gas of an account's transactions after a block, and how many reverted. */
export async function gasSince(account: Address, block: bigint): Promise<{ gas: bigint; reverts: number }> {
  let gas = 0n
  let reverts = 0
  const newest = await newestBlock()
  for (let number = block + 1n; number <= newest; number++) {
    const { transactions } = await client.getBlock({ blockNumber: number, includeTransactions: true })
    for (const { hash, from } of transactions) {
      if (from.toLowerCase() !== account.toLowerCase()) continue
      const { gasUsed, status } = await client.getTransactionReceipt({ hash })
      gas += gasUsed
      if (status === 'reverted') reverts++
    }
  }
  return { gas, reverts }
}

export const newestBlock = () => client.getBlockNumber({ cacheTime: 0 })
