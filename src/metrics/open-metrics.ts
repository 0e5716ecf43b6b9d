import {
  type CounterName,
  counters,
  type Family,
  type GaugeName,
  gauges,
  type HistogramName,
  histograms,
  type LabelsOf,
} from './families.ts'
import type { Delta } from './recorder.ts'

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** One value of a gauge, with its labels in the family's order. */
export type GaugeSample = { name: GaugeName; labels: string[]; value: number }

export const gauge = <Name extends GaugeName>(
  name: Name,
  labels: LabelsOf<(typeof gauges)[Name]['labels']>,
  value: number,
): GaugeSample => ({
  name,
  labels: gauges[name].labels.map(label => (labels as Record<string, string>)[label] ?? ''),
  value,
})

/** Writes metrics in the OpenMetrics 1.0 text format. A family without samples is described nevertheless. */
export function openMetricsText(deltas: readonly Delta[], gaugeSamples: readonly GaugeSample[]): string {
  const valuesOf = (name: string) => deltas.filter(delta => delta.name === name)
  return [
    ...Object.entries(counters).flatMap(([name, family]) => [
      ...head(name, 'counter', family),
      ...valuesOf(name).map(({ labels, values: [value = 0] }) =>
        line(`${name}_total`, pairs(family.labels, labels), value),
      ),
    ]),
    ...Object.entries(histograms).flatMap(([name, family]) => [
      ...head(name, 'histogram', family),
      ...valuesOf(name).flatMap(({ labels, values }) => histogramLines(name as HistogramName, labels, values)),
    ]),
    ...Object.entries<Family>(gauges).flatMap(([name, family]) => [
      ...head(name, typeOf(family), family),
      ...gaugeSamples
        .filter(sample => sample.name === name)
        .map(({ labels, value }) => line(gaugeSampleName(name, family), pairs(family.labels, labels), value)),
    ]),
    '# EOF\n',
  ].join('\n')
}

/** Returns the names of all samples that a scrape can contain. */
export const sampleNames = (): string[] => [
  ...Object.keys(counters).map(name => `${name as CounterName}_total`),
  ...Object.keys(histograms).flatMap(name => [`${name}_bucket`, `${name}_count`, `${name}_sum`]),
  ...Object.entries<Family>(gauges).map(([name, family]) => gaugeSampleName(name, family)),
]

const typeOf = (family: Family) => family.type ?? 'gauge'

const gaugeSampleName = (name: string, family: Family) => (typeOf(family) === 'info' ? `${name}_info` : name)

function head(name: string, type: string, { help, unit }: Family): string[] {
  // A unit must be the end of the family's name.
  const unitLines = unit !== undefined && name.endsWith(`_${unit}`) ? [`# UNIT ${name} ${unit}`] : []
  return [`# TYPE ${name} ${type}`, ...unitLines, `# HELP ${name} ${escaped(help)}`]
}

function histogramLines(name: HistogramName, labels: readonly string[], values: readonly number[]): string[] {
  const { buckets, labels: names } = histograms[name]
  const own = pairs(names, labels)
  const bounds = [...buckets.map(bound => (Number.isInteger(bound) ? `${bound}.0` : `${bound}`)), '+Inf']
  let count = 0
  const bucketLines = bounds.map((bound, index) => {
    count += values[index] ?? 0
    return line(`${name}_bucket`, [...own, `le="${bound}"`], count)
  })
  return [...bucketLines, line(`${name}_count`, own, count), line(`${name}_sum`, own, values.at(-1) ?? 0)]
}

const pairs = (names: readonly string[], values: readonly string[]) =>
  names.map((name, index) => `${name}="${escaped(values[index] ?? '')}"`)

const line = (name: string, labels: readonly string[], value: number) =>
  `${name}${labels.length > 0 ? `{${labels.join(',')}}` : ''} ${value}`

const escaped = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
