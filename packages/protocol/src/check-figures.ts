import type { Check } from './check.ts'

/** What the figures of a rule are; those of the other rules say nothing to a person. */
export const figureUnits: Record<string, 'usdc' | 'bps' | 'gas'> = {
  allocationCap: 'usdc',
  dailyLoss: 'usdc',
  dailyTurnover: 'usdc',
  entrySlippage: 'bps',
  gasBudget: 'gas',
  idleAssets: 'usdc',
  mandateExposure: 'usdc',
  mandateTrade: 'usdc',
  mandateTurnover: 'usdc',
  maxDrawdown: 'bps',
  maxTradeSize: 'usdc',
  minTradeSize: 'usdc',
  noPendingRuleMet: 'bps',
  notTriggeredAlready: 'bps',
  spotPrice: 'bps',
  stopDistance: 'bps',
  twapPrice: 'bps',
  waste: 'usdc',
}

type Figure = bigint | string | null | undefined

/**
 * Returns a figure of a check with its unit, such as `250.00 USDC` or `3 %`; undefined if it says nothing to a person.
 */
export function checkFigure(rule: Check['rule'], figure: Figure): string | undefined {
  if (figure === null || figure === undefined || !/^-?\d+$/.test(`${figure}`)) return undefined
  switch (Object.hasOwn(figureUnits, rule) ? figureUnits[rule] : undefined) {
    case 'usdc':
      return `${usdcText(BigInt(figure))} USDC`
    case 'bps':
      return `${Number(figure) / 100} %`
    case 'gas':
      return `${figure} gas`
    default:
      return undefined
  }
}

const USDC_DECIMALS = 1_000_000n

/** Returns an amount in USDC base units as USDC, with two to six decimals. */
export function usdcText(amount: bigint): string {
  const [sign, size] = amount < 0n ? ['-', -amount] : ['', amount]
  const fraction = `${size % USDC_DECIMALS}`.padStart(6, '0').replace(/0{1,4}$/, '')
  return `${sign}${size / USDC_DECIMALS}.${fraction}`
}

type ShownCheck = { rule: string; problem?: string | undefined; limit?: Figure; used?: Figure; after?: Figure }

/** Says why a check fails, as the end of a sentence; empty if its figures say nothing. */
export function explainCheck({ rule, problem, limit, used, after }: ShownCheck): string {
  if (problem) return `: ${problem}`
  const [now, then, most] = [used, after, limit].map(figure => checkFigure(rule, figure))
  const value = then === undefined ? now : `${then} after the trade`
  if (value === undefined) return ''
  return `: ${value}${most === undefined ? '' : `, with a limit of ${most}`}`
}
