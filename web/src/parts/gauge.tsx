import type { ComponentChildren } from 'preact'

type GaugeProps = {
  label: string
  /** Used share in basis points; above 10,000 is shown full. */
  bps: number
  used: ComponentChildren
  limit: ComponentChildren
  /** In words, for screen readers. */
  text: string
  isBreached?: boolean
}

const NEAR_LIMIT_BPS = 8_000

/** A limit and how much of it is used. */
export function Gauge({ label, bps, used, limit, text, isBreached = false }: GaugeProps) {
  const percent = Math.min(100, Math.max(0, bps / 100))
  const tone = isBreached || percent >= 100 ? 'bad' : bps >= NEAR_LIMIT_BPS ? 'warn' : 'good'
  return (
    <div class="gauge">
      <div class="gauge-text">
        <span class="gauge-label">{label}</span>
        <span class="gauge-values">
          {used} <span class="of">of</span> {limit}
        </span>
      </div>
      <div
        class={`gauge-bar ${tone}`}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(percent)}
        aria-valuetext={text}
      >
        <svg width="100%" height="6" aria-hidden="true">
          <rect class="track" width="100%" height="6" rx="3" />
          <rect class="fill" width={`${percent}%`} height="6" rx="3" />
        </svg>
      </div>
    </div>
  )
}
