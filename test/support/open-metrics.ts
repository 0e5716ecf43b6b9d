/** One sample: its name, its labels and its value. */
export type Sample = { name: string; labels: Record<string, string>; value: number }
type MetricFamily = { type: string; unit: string | undefined; help: string | undefined; samples: Sample[] }

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"'
const NUMBER = '[+-]?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d+)?|[+-]?Inf|NaN'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:${LABEL})(?:,${LABEL})*)?\\})? (${NUMBER})$`)

/** The suffixes that the samples of a family may have, by its type. */
const SUFFIXES: Record<string, string[]> = {
  counter: ['_total'],
  histogram: ['_bucket', '_count', '_sum'],
  gauge: [''],
  info: ['_info'],
}

/**
 * Parses a text in the OpenMetrics 1.0 format, as far as the service uses it. Throws at the first line that breaks a
 * rule of the format: order and uniqueness of families and series, suffixes, units, escapes, buckets, the end.
 */
export function parseOpenMetrics(text: string): Map<string, MetricFamily> {
  if (!text.endsWith('# EOF\n')) throw new Error('the text does not end with # EOF')
  const families = new Map<string, MetricFamily>()
  const series = new Set<string>()
  let current: { name: string; family: MetricFamily } | undefined
  const fail = (line: string, why: string): never => {
    throw new Error(`${why}: ${line}`)
  }
  for (const line of text.slice(0, -'# EOF\n'.length).split('\n').slice(0, -1)) {
    const [, keyword, name, value = ''] =
      new RegExp(`^# (TYPE|UNIT|HELP) (${NAME}) ((?:[^\\\\]|\\\\[\\\\"n])*)$`).exec(line) ?? []
    if (keyword !== undefined && name !== undefined) {
      if (current?.name !== name) {
        if (families.has(name)) fail(line, 'a family is described twice')
        current = { name, family: { type: 'unknown', unit: undefined, help: undefined, samples: [] } }
        families.set(name, current.family)
      }
      const { family } = current
      if (family.samples.length > 0) fail(line, 'a description follows a sample')
      if (keyword === 'TYPE') family.type = value in SUFFIXES ? value : fail(line, 'an unknown type')
      if (keyword === 'UNIT') family.unit = name.endsWith(`_${value}`) ? value : fail(line, 'the name lacks its unit')
      if (keyword === 'HELP') family.help = value
      continue
    }
    const [, sampleName, labelText = '', number] = SAMPLE.exec(line) ?? fail(line, 'no sample')
    if (current === undefined || sampleName === undefined) return fail(line, 'a sample without a family')
    const { name: familyName, family } = current
    if (!SUFFIXES[family.type]?.some(suffix => sampleName === `${familyName}${suffix}`))
      fail(line, `a sample that a ${family.type} cannot have`)
    const pairs = [...labelText.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', raw = '']) => [
      label,
      raw.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character)),
    ])
    const labels: Record<string, string> = Object.fromEntries(pairs)
    const key = `${sampleName} ${JSON.stringify(pairs.toSorted())}`
    if (Object.keys(labels).length !== pairs.length || series.has(key)) fail(line, 'a label or series occurs twice')
    series.add(key)
    family.samples.push({ name: sampleName, labels, value: Number(number?.replace('Inf', 'Infinity')) })
    if (family.type === 'counter' && !(Number(number) >= 0)) fail(line, 'a negative counter')
  }
  for (const [name, family] of families) if (family.type === 'histogram') checkBuckets(name, family)
  return families
}

/** Checks that buckets grow in bound and count, and that the last one has everything. */
function checkBuckets(name: string, { samples }: MetricFamily) {
  const groups = Map.groupBy(samples, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels))
  for (const [labels, group] of groups) {
    const buckets = group.filter(sample => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels: { le = '' } }) => Number(le.replace('+Inf', 'Infinity')))
    const counts = buckets.map(({ value }) => value)
    const total = group.find(sample => sample.name === `${name}_count`)?.value
    const isSorted = (values: number[]) =>
      values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0))
    if (!isSorted(bounds) || !isSorted(counts) || bounds.at(-1) !== Number.POSITIVE_INFINITY || counts.at(-1) !== total)
      throw new Error(`the buckets of ${name}${labels} are wrong`)
  }
}
