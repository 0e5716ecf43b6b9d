import { formatBps, formatExactly, formatUnits, formatUsd, formatUsdc, withSign } from '../format/amounts.ts'

/** Whether a value counts as a gain or a loss when it is shown. */
type Tone = 'up' | 'down' | 'flat'

/** A value that reads as zero is neither gain nor loss. */
const toneOf = (value: bigint | number, text: string): Tone =>
  !/[1-9]/.test(text) ? 'flat' : value > 0 ? 'up' : 'down'

type UsdcProps = { value: string | null | undefined; signed?: boolean; fraction?: number; unit?: boolean }

/** An amount of USDC from base units. `signed` colors it and adds a plus. The tooltip has every digit. */
export function Usdc({ value, signed = false, fraction = 2, unit = true }: UsdcProps) {
  if (value === null || value === undefined) return <NoValue />
  const amount = BigInt(value)
  const text = formatUsdc(value, fraction)
  return (
    <span class={`num${signed ? ` ${toneOf(amount, text)}` : ''}`} title={`${formatExactly(value, 6)} USDC`}>
      {signed ? withSign(text, toneOf(amount, text) === 'up') : text}
      {unit && <Unit>USDC</Unit>}
    </span>
  )
}

/** A percentage from basis points, or from parts per million. */
export function Percent({ ppm, bps = inBps(ppm), signed = false, fraction = 2 }: PercentProps) {
  if (bps === null || bps === undefined) return <NoValue />
  const text = formatBps(bps, fraction)
  return (
    <span class={`num${signed ? ` ${toneOf(bps, text)}` : ''}`}>
      {signed ? withSign(text, toneOf(bps, text) === 'up') : text}
    </span>
  )
}
type PercentProps = {
  bps?: number | null | undefined
  ppm?: number | null | undefined
  signed?: boolean
  fraction?: number
}

const PPM_PER_BPS = 100
const inBps = (ppm: number | null | undefined) => (typeof ppm === 'number' ? ppm / PPM_PER_BPS : ppm)

/** A price in US dollars. */
export const Price = ({ usd }: { usd: string }) => (
  <span class="num" title={`${usd} USD`}>
    {formatUsd(usd)}
    <Unit>USD</Unit>
  </span>
)

type TokensProps = {
  value: string | null | undefined
  /** Undefined while they are unknown; then no amount is shown. */
  decimals: number | undefined
  symbol: string
  fraction?: number
}

/** An amount of a token from base units. */
export function Tokens({ value, decimals, symbol, fraction = 4 }: TokensProps) {
  if (value === null || value === undefined || decimals === undefined) return <NoValue />
  return (
    <span class="num" title={`${formatExactly(value, decimals)} ${symbol}`}>
      {formatUnits(value, decimals, Math.min(fraction, decimals))}
      <Unit>{symbol}</Unit>
    </span>
  )
}

/** A count with its noun, such as `3 positions`. */
export const Count = ({ value, one, many = `${one}s` }: { value: number; one: string; many?: string }) => (
  <span class="num">
    {value.toLocaleString('en')} {value === 1 ? one : many}
  </span>
)

export const NoValue = () => (
  <span class="none" title="No value">
    –
  </span>
)

const Unit = ({ children }: { children: string }) => <span class="unit"> {children}</span>
