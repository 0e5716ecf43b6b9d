import { parseArgs } from 'node:util'
import { prepareService } from '../test/faults/service.ts'
import { type ProviderName, providerNames } from '../test/providers/profiles.ts'
import { type ProviderReport, runProvider } from '../test/providers/run.ts'

// `npm run providers -- [--profile lagging-pool] [--seed 1] [--rounds 5]`: the service behind a proxy that behaves like a public
// provider, with honest agents; everything it told is compared with the chain. Exits 1 on a false answer, a lost or a
// doubled event, or if fewer than 99 % of the operations succeed at once.
const { values } = parseArgs({
  options: {
    profile: { type: 'string', multiple: true, default: providerNames },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
    verbose: { type: 'boolean', default: false },
  },
})
const unknown = values.profile.filter(name => !providerNames.includes(name as ProviderName))
if (unknown.length > 0)
  throw new Error(`Unknown profile ${unknown.join(', ')}. Choose from: ${providerNames.join(', ')}`)

const FEWEST_FIRST_TRIES = 0.99
const isGood = ({ attempts, succeeded, missing, doubled, falsehoods }: ProviderReport) =>
  missing.length + doubled.length + falsehoods.length === 0 && succeeded >= FEWEST_FIRST_TRIES * attempts

const service = await prepareService()
let failures = 0
try {
  for (const name of values.profile) {
    const report = await runProvider(service.start, {
      name: name as ProviderName,
      seed: Number(values.seed),
      rounds: Number(values.rounds),
    })
    const { attempts, succeeded, missing, doubled, falsehoods, refusals, limits, calls } = report
    console.log(
      `${name}: ${succeeded} of ${attempts} operations at once, ${missing.length} events missing, ${doubled.length} doubled, ${falsehoods.length} false answers, ${report.callsPerIntent.toFixed(1)} calls and ${(report.bytesPerIntent / 1024).toFixed(0)} KiB per intent, ${report.callsPerIdleHour.toFixed(0)} calls per idle hour, ${report.seconds.toFixed(0)} s`,
    )
    for (const line of [...falsehoods, ...missing, ...doubled].slice(0, 20)) console.log(`  ${line}`)
    console.log(`  ${JSON.stringify({ refusals, limits, calls })}`)
    if (values.verbose) console.log(report.logs)
    if (!isGood(report)) failures++
  }
} finally {
  service.remove()
}
process.exitCode = failures === 0 ? 0 : 1
