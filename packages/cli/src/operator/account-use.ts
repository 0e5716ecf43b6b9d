import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import type { Address, PublicClient } from 'viem'
import type { GasPrices } from '../../../../src/config/config.ts'

const balances = findingsOf('balance')

/** An account that pays for gas, and what it is for. */
type Payer = { address: Address; purpose: string }

const DAY_SECONDS = 86_400
const HOUR_SECONDS = 3_600
/** Blocks whose times tell how long a block takes. */
const SAMPLE_BLOCKS = 1_000n

/**
 * Reads the balances of accounts, and what they used within the last day, or hour if the node has no older states. The
 * use is undefined if the node has none, or if an account was funded meanwhile.
 */
export async function readBalances(client: PublicClient, accounts: readonly Payer[]): Promise<BalanceFact[]> {
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
  { address }: Payer,
  { head, wei, secondsPerBlock, seconds }: { head: bigint; wei: bigint; secondsPerBlock: number; seconds: number },
): Promise<bigint | undefined> {
  const blocks = BigInt(Math.round(seconds / secondsPerBlock))
  if (blocks > head) return undefined
  const before = await client.getBalance({ address, blockNumber: head - blocks }).catch(() => undefined)
  if (before === undefined || before < wei) return undefined
  return ((before - wei) * BigInt(DAY_SECONDS)) / BigInt(seconds)
}

/** What an account has and uses. `weiPerDay` is undefined if its use is not known. */
type BalanceFact = Payer & { wei: bigint; gasPriceWei: bigint; weiPerDay: bigint | undefined }

/** The gas of a typical transaction. */
const TYPICAL_GAS = 500_000n
const MIN_TRANSACTIONS = 100n
const MIN_DAYS = 7n

/** Judges whether the accounts can pay for gas, and for how long at their present use. */
export const judgeBalances = (facts: readonly BalanceFact[]): Finding[] =>
  facts.map(({ address, purpose, wei, gasPriceWei, weiPerDay }) => {
    const fix = `send ether to ${address}`
    const transactions = gasPriceWei === 0n ? MIN_TRANSACTIONS : wei / (TYPICAL_GAS * gasPriceWei)
    const days = weiPerDay === undefined || weiPerDay === 0n ? undefined : wei / weiPerDay
    const left = `${ether(wei)} ETH, ${transactions} transactions at the present gas price${days === undefined ? '' : `, ${days} days at the present use`}`
    if (wei === 0n) return balances.wrong(address, `The ${purpose} ${address} has no ether and can send nothing.`, fix)
    if (transactions < 1n)
      return balances.wrong(address, `The ${purpose} ${address} cannot pay for a transaction: it has ${left}.`, fix)
    if (transactions < MIN_TRANSACTIONS || (days !== undefined && days < MIN_DAYS))
      return balances.warning(address, `The ${purpose} ${address} soon runs out: it has ${left}.`, fix)
    return balances.ok(address, `The ${purpose} ${address} has ${left}.`)
  })

const price = findingsOf('gas price')

/**
 * Judges the present price of gas by the two prices of GAS_PRICE_GWEI; no finding on a development chain, where gas has
 * none.
 */
export function judgeGasPrice(gasPriceWei: bigint, prices: GasPrices | undefined): Finding[] {
  if (prices === undefined) return []
  const { expectedWei, maxWei } = prices
  const subject = 'GAS_PRICE_GWEI'
  const now = `Gas costs ${gwei(gasPriceWei)} gwei, without data on L1`
  const above = `above ${gwei(maxWei)} gwei, openings, additions, orders, mandates, registrations, links and fees are refused, and reductions, exits and stops are sent`
  const fix = 'compare with the normal price of the chain, and set GAS_PRICE_GWEI'
  if (gasPriceWei > maxWei) return [price.wrong(subject, `${now}: ${above}.`, fix)]
  if (gasPriceWei > expectedWei)
    return [price.warning(subject, `${now}, so the budgets have less gas than they name; ${above}.`, fix)]
  return [price.ok(subject, `${now}; ${above}.`)]
}

const gwei = (wei: bigint): string => `${Number(wei) / 1e9}`

/** Returns ether with four decimals. */
const ether = (wei: bigint): string => (Number(wei / 10n ** 10n) / 1e8).toFixed(4)
