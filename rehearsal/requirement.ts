/** What a figure is: a part of a whole, an amount of USDC, or a plain number. */
type Unit = 'percent' | 'usdc' | 'number'

/** The figures that `--require` compares. */
export const FIGURES = {
  return: 'percent',
  excess: 'percent',
  drawdown: 'percent',
  winrate: 'percent',
  pnl: 'usdc',
  cost: 'usdc',
  trades: 'number',
  refusals: 'number',
  score: 'number',
  sharpe: 'number',
} as const satisfies Record<string, Unit>
export type Figure = keyof typeof FIGURES

/**
 * Values in millionths: a percentage in parts per million, USDC in base units. A figure that is not defined is null.
 */
export type Figures = Record<Figure, bigint | null>

const COMPARISONS = {
  '>=': (a: bigint, b: bigint) => a >= b,
  '<=': (a: bigint, b: bigint) => a <= b,
  '>': (a: bigint, b: bigint) => a > b,
  '<': (a: bigint, b: bigint) => a < b,
  '=': (a: bigint, b: bigint) => a === b,
} as const

export type Condition = { text: string; figure: Figure; comparison: keyof typeof COMPARISONS; value: bigint }
/**
 * Whether a condition holds. `actual` is in millionths; null if the figure is not defined, and the condition then
 * fails.
 */
export type Verdict = { text: string; pass: boolean; actual: bigint | null }

/** The bar is not written in the grammar. The message says what to write instead. */
export class RequirementError extends Error {
  override readonly name = 'RequirementError'
}

const CONDITION = /^([a-z]+)\s*(>=|<=|>|<|=)\s*(-?)(\d{1,12})(?:\.(\d{1,6}))?\s*(%?)$/i

/**
 * Parses a bar such as `return>0 and drawdown<5%`: conditions of `FIGURES`, joined by `and`. Percentages need their
 * sign, except zero. Throws RequirementError.
 */
export function parseRequirement(text: string): Condition[] {
  if (/\b(or|not)\b|[()]/i.test(text))
    throw new RequirementError(`"${text}" has more than conditions joined by "and". Run once for each alternative.`)
  return text.split(/\s+and\s+/i).map(part => parseCondition(part.trim()))
}

function parseCondition(text: string): Condition {
  const [, name = '', comparison, sign, whole = '', decimals = '', percent] = CONDITION.exec(text) ?? []
  if (comparison === undefined)
    throw new RequirementError(
      `"${text}" is not a condition. Write a figure, one of > >= < <= =, and a number, such as drawdown<5%.`,
    )
  const figure = name.toLowerCase()
  if (!isFigure(figure))
    throw new RequirementError(`There is no figure "${name}". Choose one of: ${Object.keys(FIGURES).join(', ')}.`)
  const millionths = BigInt(whole + decimals.padEnd(6, '0')) * (sign ? -1n : 1n)
  const isPercent = FIGURES[figure] === 'percent'
  if (isPercent && !percent && millionths !== 0n)
    throw new RequirementError(`${figure} is a percentage. Write ${text}% for that many percent.`)
  if (!isPercent && percent) throw new RequirementError(`${figure} is not a percentage. Write the number without %.`)
  if (percent && decimals.length > 4)
    throw new RequirementError(`"${text}" is finer than the figures are. Write at most four decimals of a percentage.`)
  return {
    text,
    figure,
    comparison: comparison as Condition['comparison'],
    value: percent ? millionths / 100n : millionths,
  }
}

const isFigure = (name: string): name is Figure => Object.hasOwn(FIGURES, name)

/** Compares the figures of a run with each condition. The bar is met if every verdict passes. */
export function judge(conditions: readonly Condition[], figures: Figures): Verdict[] {
  return conditions.map(({ text, figure, comparison, value }) => {
    const actual = figures[figure]
    return { text, actual, pass: actual !== null && COMPARISONS[comparison](actual, value) }
  })
}
