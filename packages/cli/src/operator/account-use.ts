import type { PublicClient } from 'viem'
import type { ServiceAccount } from '../../../../src/doctor/deployment-facts.ts'
import type { BalanceFact } from '../../../../src/doctor/judge-accounts.ts'

const DAY_SECONDS = 86_400
const HOUR_SECONDS = 3_600
/** Blocks whose times tell how long a block takes. */
const SAMPLE_BLOCKS = 1_000n

/**
 * Reads the balances of accounts, and what they used within the last day, or hour if the node has no older states. The use
 * is undefined if the node has none, or if an account was funded meanwhile.
 */
export async function readBalances(client: PublicClient, accounts: readonly ServiceAccount[]): Promise<BalanceFact[]> {
  const [gasPriceWei, head] = await Promise.all([client.getGasPrice(), client.getBlock()])
  const secondsPerBlock = await blockTime(client, head)
  return Promise.all(
    accounts.map(async account => {
      const wei = await client.getBalance({ address: account.address })
      const weiPerDay =
        (await useOver(client, account, { head: head.number, wei, secondsPerBlock, seconds: DAY_SECONDS })) ??
        (await useOver(client, account, { head: head.number, wei, secondsPerBlock, seconds: HOUR_SECONDS }))
      return { ...account, wei, gasPriceWei, weiPerDay }
    }),
  )
}

async function blockTime(client: PublicClient, head: { number: bigint; timestamp: bigint }): Promise<number> {
  const blocks = head.number < SAMPLE_BLOCKS ? head.number : SAMPLE_BLOCKS
  if (blocks === 0n) return 1
  const earlier = await client.getBlock({ blockNumber: head.number - blocks })
  return Math.max(0.05, Number(head.timestamp - earlier.timestamp) / Number(blocks))
}

/** Returns the wei per day that an account used within the last seconds. */
async function useOver(
  client: PublicClient,
  { address }: ServiceAccount,
  { head, wei, secondsPerBlock, seconds }: { head: bigint; wei: bigint; secondsPerBlock: number; seconds: number },
): Promise<bigint | undefined> {
  const blocks = BigInt(Math.round(seconds / secondsPerBlock))
  if (blocks > head) return undefined
  const before = await client.getBalance({ address, blockNumber: head - blocks }).catch(() => undefined)
  if (before === undefined || before < wei) return undefined
  return ((before - wei) * BigInt(DAY_SECONDS)) / BigInt(seconds)
}
