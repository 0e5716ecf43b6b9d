/** Wei per gas, as EIP-1559 defines them. */
export type TransactionFees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

/** Returns the bid of a transaction: it stays valid until the base fee has doubled. */
export const feesOver = (baseFee: bigint, priorityFeeWei: bigint): TransactionFees => ({
  maxFeePerGas: (baseFee === 0n ? 1n : 2n * baseFee) + priorityFeeWei,
  maxPriorityFeePerGas: priorityFeeWei,
})
