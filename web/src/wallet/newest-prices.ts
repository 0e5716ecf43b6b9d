import { type CarriedPrices, encodeWithPrices } from '@agent-trading-service/protocol/carried-prices'
import { numberToHex } from 'viem'
import { reads } from '../data/client.ts'
import type { Connected } from './provider.ts'
import { asIs, type BringPrices, readNumber } from './vault-calls.ts'

const lastPrices = new Map<string, { at: number; bring: BringPrices }>()

/** How old the prices of figures may be that a page shows. */
const SHOWN_AGE_MS = 15_000

/**
 * Returns the newest prices of what a vault holds: the service chooses them, the wallet's node names the oracle that
 * verifies them. Without any, a call goes as it is and the vault decides.
 */
export async function newestPricesOf(wallet: Connected, vault: string): Promise<BringPrices> {
  const prices = await reads.getPriceReports({ vault }).catch(() => undefined)
  let bring = asIs
  if (prices && prices.reports.length + prices.feeds.length > 0) {
    const oracle = numberToHex(await readNumber(wallet, vault, 'priceOracle', []), { size: 20 })
    bring = data => encodeWithPrices(oracle, prices as CarriedPrices, data)
  }
  lastPrices.set(vault, { at: Date.now(), bring })
  return bring
}

/** Returns prices for figures that are only shown. */
export async function shownPricesOf(wallet: Connected, vault: string): Promise<BringPrices> {
  const held = lastPrices.get(vault)
  return held && Date.now() - held.at < SHOWN_AGE_MS ? held.bring : newestPricesOf(wallet, vault)
}
