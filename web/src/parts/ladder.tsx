import type { Schema } from '../data/client.ts'
import { formatBps, formatUsd, withSign } from '../format/amounts.ts'
import type { Level } from './chart.tsx'

type Rule = Schema['ExitRule'] & { isFired: boolean }
type LadderProps = {
  /** Average entry price in USDC base units. */
  entryPriceUsdc: string
  rules: Rule[]
  /** The prices that open orders of the position wait for. */
  orders?: Level[]
  /** Current price in US dollars; undefined while it is unknown. */
  priceUsd?: string | undefined
  isPriceStale?: boolean
}

/** A price on the scale, with its label and the same in words. */
type Target = { price: number; kind: Level['tone']; label: string; words: string; isFired: boolean }
/** `row` is the row of the label on a narrow scale, `wideRow` on a wide one. */
type Mark = Target & { at: number; row: number; wideRow: number }

const MARGIN = 0.07
/** The widths of labels as shares of the scale's width. */
const LABEL_WIDTH = { narrow: 0.19, wide: 0.12 }
const TOP_LABEL_WIDTH = 0.36
/** Labels nearer to an edge are aligned to it. */
const NEAR_EDGE = 0.06
const [MIDDLE, BAR_HEIGHT] = [13, 8]

/** Draws the exit rules and orders of a position on one price scale with its entry and the current price. */
export function Ladder({ entryPriceUsdc, rules, orders = [], priceUsd, isPriceStale = false }: LadderProps) {
  const entry = Number(entryPriceUsdc) / 1e6
  const price = priceUsd === undefined ? undefined : Number(priceUsd)
  const targets = [...rules.map(rule => targetOfRule(rule, entry)), ...orders.map(targetOfOrder)]
  const prices = targets.map(target => target.price)
  const all = [...prices, entry, ...(price === undefined ? [] : [price])]
  const [low, high] = [Math.min(...all), Math.max(...all)]
  const span = high - low || entry * 0.1 || 1
  const place = (value: number) => MARGIN + ((value - low) / span) * (1 - 2 * MARGIN)
  const marks = toMarks(targets, place)
  const rows = Math.min(5, Math.max(1, ...marks.map(({ row }) => row + 1)))
  const wideRows = Math.max(1, ...marks.map(({ wideRow }) => wideRow + 1))
  const percent = (share: number) => `${(share * 100).toFixed(2)}%`
  const [from, to] = [place(entry), price === undefined ? place(entry) : place(price)]
  const isCrowded = price !== undefined && Math.abs(to - from) < TOP_LABEL_WIDTH

  const priceText =
    priceUsd === undefined ? '' : ` ${isPriceStale ? 'Last known price' : 'Price now'} ${formatUsd(priceUsd)} USD.`

  return (
    <div
      class="ladder"
      role="img"
      aria-label={`Entry at ${formatUsd(`${entry}`)} USD.${priceText} ${targets.map(({ words }) => `${words}.`).join(' ')}`}
    >
      <div class={`ladder-top${isCrowded ? ' crowded' : ''}`}>
        <span class="ladder-entry" style={labelPlace(from, TOP_LABEL_WIDTH / 2)}>
          entry <b>{formatUsd(`${entry}`)}</b>
        </span>
        {price !== undefined && (
          <span
            class={`ladder-price${isPriceStale ? ' stale' : ''}`}
            style={labelPlace(place(price), TOP_LABEL_WIDTH / 2)}
          >
            {isPriceStale ? 'last known' : 'now'} <b>{formatUsd(`${price}`)}</b>
          </span>
        )}
      </div>
      <svg class="ladder-scale" width="100%" height={2 * MIDDLE} aria-hidden="true">
        <Bar kind="axis" from={0} to={1} />
        {prices.some(trigger => trigger < entry) && <Bar kind="zone stop" from={MARGIN} to={from} />}
        {prices.some(trigger => trigger > entry) && <Bar kind="zone profit" from={from} to={place(high)} />}
        <Bar
          kind={price !== undefined && price < entry ? 'move down' : 'move up'}
          from={Math.min(from, to)}
          to={Math.max(from, to)}
        />
        {marks.map(({ at, kind, isFired }, index) => (
          <line
            key={index}
            class={`mark ${kind}${isFired ? ' fired' : ''}`}
            x1={percent(at)}
            x2={percent(at)}
            y1={MIDDLE - 10}
            y2={MIDDLE + 10}
          />
        ))}
        <line class="mark entry" x1={percent(from)} x2={percent(from)} y1={MIDDLE - 8} y2={MIDDLE + 8} />
        {price !== undefined && (
          <circle class={isPriceStale ? 'now stale' : 'now'} cx={percent(to)} cy={MIDDLE} r="6.5" />
        )}
      </svg>
      <div class={`ladder-labels rows-${rows} wide-rows-${wideRows}`}>
        {marks.map(({ at, row, wideRow, kind, price: trigger, label, isFired }, index) => (
          <span
            key={index}
            class={`ladder-label ${kind} row-${row} wide-${wideRow}${isFired ? ' fired' : ''}`}
            style={labelPlace(at, NEAR_EDGE)}
          >
            <span>{label}</span>
            <b>{formatUsd(`${trigger}`)}</b>
          </span>
        ))}
      </div>
    </div>
  )
}

/** A stretch of the scale; from and to are shares of its width. */
const Bar = ({ kind, from, to }: { kind: string; from: number; to: number }) => (
  <rect
    class={kind}
    x={`${(from * 100).toFixed(2)}%`}
    width={`${((to - from) * 100).toFixed(2)}%`}
    y={MIDDLE - BAR_HEIGHT / 2}
    height={BAR_HEIGHT}
    rx={kind === 'axis' ? BAR_HEIGHT / 2 : 0}
  />
)

/** Keeps a label inside the scale: within half its width of an edge it is aligned to that edge. */
function labelPlace(at: number, half: number) {
  if (at < half) return { left: '0', transform: 'none' }
  if (at > 1 - half) return { right: '0', left: 'auto', transform: 'none' }
  return { left: `${(at * 100).toFixed(2)}%`, right: 'auto', transform: 'translateX(-50%)' }
}

/** Places the targets from left to right. */
function toMarks(targets: Target[], place: (price: number) => number): Mark[] {
  const sorted = targets.map(target => ({ ...target, at: place(target.price) })).sort((a, b) => a.at - b.at)
  const places = sorted.map(({ at }) => at)
  const [rows, wideRows] = [rowsOf(places, LABEL_WIDTH.narrow), rowsOf(places, LABEL_WIDTH.wide)]
  return sorted.map((mark, index) => ({ ...mark, row: rows[index] ?? 0, wideRow: wideRows[index] ?? 0 }))
}

/** Returns a row for each label, from left to right: a label that would touch another one goes to the next row. */
function rowsOf(places: number[], width: number): number[] {
  const ends: number[] = []
  return places.map(at => {
    const start = Math.min(1 - width, Math.max(0, at - width / 2))
    const free = ends.findIndex(end => start >= end)
    const row = free < 0 ? ends.length : free
    ends[row] = start + width
    return row
  })
}

function targetOfRule({ triggerType, triggerBps, isFired }: Rule, entry: number): Target {
  const price = entry * (1 + triggerBps / 10_000)
  const name = triggerType === 'StopLoss' ? 'Stop-loss' : 'Take-profit'
  return {
    price,
    kind: triggerType === 'StopLoss' ? 'stop' : 'profit',
    label: withSign(formatBps(triggerBps, 1), triggerBps > 0),
    words: `${name} at ${formatUsd(`${price}`)} USD, ${formatBps(triggerBps)} from the entry${isFired ? ', fired' : ''}`,
    isFired,
  }
}

const targetOfOrder = ({ value, text, tone }: Level): Target => ({
  price: value,
  kind: tone,
  label: 'order',
  words: `Open ${text} at ${formatUsd(`${value}`)} USD`,
  isFired: false,
})

/** Returns the rules of a position, fired ones marked. */
export const ladderRules = ({ exitRules, nextRuleIndex }: Schema['AgentPosition']): Rule[] =>
  exitRules.map((rule, index) => ({ ...rule, isFired: index < nextRuleIndex }))

/** The entry of a position and the triggers that can still fire, as prices. */
export function levelsOf({ entryPriceUsdc, pendingRules }: Schema['AgentPosition']): Level[] {
  const entry = Number(entryPriceUsdc) / 1e6
  return [
    { value: entry, text: 'entry', tone: 'entry' },
    ...pendingRules.map(({ triggerType, triggerBps }) => ({
      value: entry * (1 + triggerBps / 10_000),
      text: `${triggerType === 'StopLoss' ? 'stop' : 'profit'} ${formatBps(triggerBps, 1)}`,
      tone: triggerType === 'StopLoss' ? ('stop' as const) : ('profit' as const),
    })),
  ]
}
