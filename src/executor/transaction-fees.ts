import type { ChainHead } from './chain-head.ts'

/** Wei per gas, as EIP-1559 defines them. */
export type TransactionFees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

/** Transaction pools accept a replacement only with a fee at least a tenth higher. */
const REPLACEMENT_PERCENT = 125n

/** Returns the bid at a head: it stays valid until the base fee has doubled. */
export const feesAt = ({ baseFee }: ChainHead, priorityFeeWei: bigint): TransactionFees => ({
  maxFeePerGas: (baseFee === 0n ? 1n : 2n * baseFee) + priorityFeeWei,
  maxPriorityFeePerGas: priorityFeeWei,
})

/** Returns the fees of a transaction that replaces one with the given maximum fee. */
export function replacementFees(fees: TransactionFees, replacedMaxFee: bigint): TransactionFees {
  const minFee = (replacedMaxFee * REPLACEMENT_PERCENT) / 100n + 1n
  return { ...fees, maxFeePerGas: minFee > fees.maxFeePerGas ? minFee : fees.maxFeePerGas }
}
