type Action = { state: string; effectiveAt: string; oldMultiplier: string; newMultiplier: string }
type Bar = { time: number; seconds: number; close: number }

/** Marks of the corporate actions that have taken effect, at the price of their time: it has no step there. */
export const actionMarksOf = (actions: readonly Action[], bars: readonly Bar[]) =>
  actions.flatMap(({ state, effectiveAt, oldMultiplier, newMultiplier }) => {
    const time = Number(effectiveAt)
    const bar = bars.findLast(each => each.time - each.seconds / 2 <= time)
    if (state !== 'effective' || bar === undefined) return []
    const text = `Corporate action: one token stands for ${newMultiplier} shares instead of ${oldMultiplier}`
    return [{ time, value: bar.close, tone: 'action' as const, text }]
  })
