import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { formatUsdc, withSign } from '../../format/amounts.ts'
import { Usdc } from '../../parts/figures.tsx'
import { type CalendarDay, calendarMonth, monthOf, strengthOf } from './pnl-calendar.ts'

type Days = Schema['AgentStats']['pnlByDay']

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

/** What an agent realized on each day, a month at a time. `now` is the time of the newest block in Unix seconds. */
export function PnlCalendar({ days, now }: { days: Days; now: number }) {
  const newest = monthOf(now)
  const oldest = Math.min(newest, monthOf(Number(days[0]?.day ?? now)))
  const [chosen, choose] = useState<number>()
  const month = Math.max(oldest, Math.min(newest, chosen ?? newest))
  const { name, weeks, sum } = calendarMonth(month, days)
  return (
    <section class="calendar" aria-label="Profit and loss by day">
      <div class="calendar-head">
        <h3>{name}</h3>
        <Usdc value={sum} signed />
        <div class="buttons">
          <button type="button" disabled={month === oldest} onClick={() => choose(month - 1)}>
            <span aria-hidden="true">‹</span>
            <span class="hidden">The month before</span>
          </button>
          <button type="button" disabled={month === newest} onClick={() => choose(month + 1)}>
            <span aria-hidden="true">›</span>
            <span class="hidden">The month after</span>
          </button>
        </div>
      </div>
      <table aria-label={`Realized in ${name}, by day`}>
        <thead>
          <tr>
            {WEEKDAYS.map(day => (
              <th key={day} scope="col" abbr={day}>
                {day.slice(0, 3)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeks.map((week, index) => (
            <tr key={index}>
              {week.map((day, weekday) => (
                <Day key={weekday} day={day} days={days} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="fine">Realized by sales, in USDC; days begin at midnight UTC.</p>
    </section>
  )
}

function Day({ day, days }: { day: CalendarDay | undefined; days: Days }) {
  if (day === undefined) return <td />
  const { date, pnl } = day
  if (pnl === undefined)
    return (
      <td>
        <span class="date">{date}</span>
      </td>
    )
  const isGain = !pnl.startsWith('-')
  const tone = BigInt(pnl) === 0n ? '' : `${isGain ? 'gain' : 'fall'} strength-${strengthOf(pnl, days)}`
  return (
    <td class={tone} title={`${formatUsdc(pnl)} USDC`}>
      <span class="date">{date}</span>
      <span class="num">{withSign(compact(pnl), isGain && BigInt(pnl) !== 0n)}</span>
    </td>
  )
}

const compactNumber = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

const compact = (usdc: string) => compactNumber.format(Number(usdc) / 1e6).replace('-', '−')
