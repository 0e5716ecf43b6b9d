import { type Address, encodeFunctionData, parseUnits } from 'viem'
import { scaledStockTokenAbi } from '../contracts-abi/scaled-stock-token.ts'
import type { Deployment } from '../devnet/deployment.ts'
import type { RecordedAction } from '../packages/cli/src/tape/recorded-actions.ts'

const MULTIPLIER_DECIMALS = 18
const GAS = 200_000

/**
 * Returns the transactions in which the issuer of the tokens announces corporate actions at a time of the chain, which
 * is `shift` seconds after the tape's. One whose time has come takes effect in the same block.
 */
export const actionTransactions = (
  { accounts, tokens }: Pick<Deployment, 'accounts' | 'tokens'>,
  actions: readonly RecordedAction[],
  { time, shift }: { time: number; shift: number },
) =>
  actions.map(({ symbol, multiplier, effectiveAt }) => ({
    from: accounts.admin.address,
    to: tokens[symbol] as Address,
    data: encodeFunctionData({
      abi: scaledStockTokenAbi,
      functionName: 'updateMultiplier',
      args: [parseUnits(multiplier, MULTIPLIER_DECIMALS), BigInt(Math.max(effectiveAt + shift, time))],
    }),
    gas: GAS,
  }))
