import { useId } from 'preact/hooks'

type SparklineProps = { label: string; points: { time: number; value: number }[] }

const [WIDTH, HEIGHT] = [100, 36]

/** A line without axes, stretched to the width of its place. Its figures stand next to it as text. */
export function Sparkline({ label, points }: SparklineProps) {
  const fill = useId()
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return <div class="sparkline" />
  const values = points.map(({ value }) => value)
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const x = (time: number) => (((time - first.time) / (last.time - first.time || 1)) * WIDTH).toFixed(2)
  const y = (value: number) => (HEIGHT - 2 - ((value - low) / (high - low || 1)) * (HEIGHT - 4)).toFixed(2)
  const line = points
    .slice(1)
    .reduce((path, { time, value }) => `${path}H${x(time)}V${y(value)}`, `M0 ${y(first.value)}`)
  return (
    <svg
      class="sparkline pane accent"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <linearGradient id={fill} x1="0" x2="0" y1="0" y2="1">
        <stop offset="0" class="fill-strong" />
        <stop offset="1" class="fill-none" />
      </linearGradient>
      <path d={`${line}H${WIDTH}V${HEIGHT}H0Z`} fill={`url(#${fill})`} />
      <path class="line" d={`${line}H${WIDTH}`} />
    </svg>
  )
}
