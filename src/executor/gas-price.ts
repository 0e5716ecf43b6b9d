import type { GasPrices } from '../config/config.ts'
import type { IntentKind, RelayOutcome, RelayRequest } from './relay-types.ts'

/** The outcome of a request while the gas price is above the ceiling. */
type Costly = Extract<RelayOutcome, { state: 'costly' }>

/**
 * The kinds that the operator does not pay for above the ceiling. The others reduce or protect, or are the service's
 * own.
 */
const BOUND_BY_PRICE: readonly IntentKind[] = [
  'open',
  'add',
  'order',
  'register',
  'link',
  'settle',
  'owner',
  'feedback',
  'checkpoint',
  'vaultRequests',
]

/** Returns the most that the operator pays for gas of a request, in wei; undefined if it is sent at any price. */
export const maxGasPriceOf = (
  { kind, protects }: Pick<RelayRequest, 'kind' | 'protects'>,
  prices: GasPrices | undefined,
): bigint | undefined => (BOUND_BY_PRICE.includes(kind) && !protects ? prices?.maxWei : undefined)

/** Returns why a request waits for a lower gas price; undefined if it does not. */
export function refusalOfPrice(
  request: Pick<RelayRequest, 'kind' | 'protects'>,
  gasPriceWei: bigint,
  prices: GasPrices | undefined,
): Costly | undefined {
  const maxGasPriceWei = maxGasPriceOf(request, prices)
  return maxGasPriceWei !== undefined && gasPriceWei > maxGasPriceWei
    ? { state: 'costly', gasPriceWei, maxGasPriceWei }
    : undefined
}

/** Returns what one gas of a call costs with the call's data on L1, in wei. */
export const priceWithL1 = (gasPriceWei: bigint, { l2Gas, l1Gas }: { l2Gas: number; l1Gas: number }): bigint =>
  l2Gas === 0 ? gasPriceWei : (gasPriceWei * BigInt(l2Gas + l1Gas)) / BigInt(l2Gas)

/**
 * Returns as how much gas one counts in the budgets at a price: as one up to the expected price, and in proportion
 * above.
 */
export const weightOfGas = (gasPriceWei: bigint, prices: GasPrices | undefined): number =>
  prices === undefined ? 1 : Math.max(1, Number(gasPriceWei) / Number(prices.expectedWei))
