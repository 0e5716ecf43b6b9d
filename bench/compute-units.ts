/**
 * Alchemy's price of each method that the service calls, in compute units; 20 for the others.
 * https://www.alchemy.com/docs/reference/compute-unit-costs
 */
const COMPUTE_UNITS: Record<string, number> = {
  eth_chainId: 0,
  eth_blockNumber: 10,
  eth_call: 26,
  eth_getLogs: 60,
  eth_sendRawTransaction: 40,
  eth_sendRawTransactionSync: 40,
}

/** Returns what a provider bills for a call. */
export const computeUnitsOf = (method: string): number => COMPUTE_UNITS[method] ?? 20
