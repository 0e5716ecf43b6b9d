/**
 * Returns the gas limit of a transaction with this estimate: half more. It runs in a later block, whose time and prices
 * may let a contract write more, and on Arbitrum chains an estimate contains gas for L1. Gas that is not used is not
 * paid.
 */
export const gasLimitOf = (estimate: bigint): bigint => (estimate * 3n) / 2n
