/** Prices are stored as text with this many digits, which sorts like the numbers. */
const PRICE_DIGITS = 32
/** Reached by every price. Stored prices are no higher. */
export const MAX_PRICE = 10n ** BigInt(PRICE_DIGITS) - 1n

export const priceText = (price: bigint | undefined): string | null =>
  price === undefined ? null : `${price < MAX_PRICE ? price : MAX_PRICE}`.padStart(PRICE_DIGITS, '0')

export const toPrice = (text: SqlStorageValue | undefined): bigint | undefined =>
  typeof text === 'string' ? BigInt(text) : undefined
