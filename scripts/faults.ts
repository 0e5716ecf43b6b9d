import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { runClientAgent } from '../test/faults/client-agents.ts'
import { runAgent } from '../test/faults/clients.ts'
import { planOf } from '../test/faults/plan.ts'
import { runPythonAgent } from '../test/faults/python-agents.ts'
import { type SeedResult, startRig } from '../test/faults/rig.ts'
import { prepareService, startExpress } from '../test/faults/service.ts'

// `npm run faults -- [--seeds 1..200 | --seed 17] [--intents 300] [--client typescript|python] [--peer] [--orders]
// [--rigs 2] [--verbose]`: real processes, a node that fails as the seed says, and a comparison of every response with
// the chain. Exits 1 on a violation; with --peer the baseline relay runs instead of the service, and violations are
// expected. --client lets agents use a client of packages/; the Python one has to be installed in the interpreter that
// PYTHON names. With --orders agents place orders in every seed, not in half of them.
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1..20' },
    intents: { type: 'string', default: '300' },
    client: { type: 'string' },
    rigs: { type: 'string', default: `${Math.min(4, cpus().length)}` },
    peer: { type: 'boolean', default: false },
    orders: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
  },
})
const agents = { typescript: runClientAgent, python: runPythonAgent }
const agent = values.client === undefined ? runAgent : agents[values.client as keyof typeof agents]
const [first, last = first] = (values.seed ?? values.seeds).split('..').map(Number)
const intents = Number(values.intents)
if (agent === undefined || !Number.isInteger(first) || !Number.isInteger(last) || !Number.isInteger(intents))
  throw new Error(
    'Usage: npm run faults -- [--seeds 1..200 | --seed 17] [--intents 300] [--client typescript|python] [--peer] [--rigs 2]',
  )
const seeds = Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => Number(first) + index)

const { start, remove } = values.peer ? { start: startExpress, remove: () => {} } : await prepareService()
const began = Date.now()
const results: SeedResult[] = []

/** Runs one seed after the other on its own chain. */
async function work(): Promise<void> {
  const rig = await startRig(start, agent)
  try {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const plan = planOf(seed, intents)
      const hasOrders = !values.peer && values.client === undefined && (values.orders || plan.hasOrders)
      const result = await rig.run({ ...plan, hasOrders, ...(values.client !== undefined && { isPaid: false }) })
      results.push(result)
      print(result)
    }
  } finally {
    await rig.stop()
  }
}

function print({
  seed,
  intents,
  executed,
  rejected,
  repeated,
  seconds,
  events,
  violations,
  faults,
  codes,
}: SeedResult) {
  console.log(
    `seed ${seed}: ${intents} intents, ${executed} executed, ${rejected} rejected, ${repeated} repeated, ${violations.length} violations, ${seconds.toFixed(1)} s (${events.join(', ')})`,
  )
  if (values.verbose) console.log(`  ${JSON.stringify({ faults, codes })}`)
  if (values.peer || violations.length === 0) return
  for (const { rule, what } of violations.slice(0, 20)) console.log(`  ${rule}: ${what}`)
  console.log(
    `  repeat it: npm run faults -- --seed ${seed} --intents ${values.intents}${values.client === undefined ? '' : ` --client ${values.client}`}${values.orders ? ' --orders' : ''}`,
  )
}

try {
  await Promise.all(Array.from({ length: Math.min(Number(values.rigs), seeds.length) }, work))
} finally {
  remove()
}
const violations = results.flatMap(result => result.violations)
const rules = Map.groupBy(violations, ({ rule }) => rule)
const total = (of: (result: SeedResult) => number) => results.reduce((sum, result) => sum + of(result), 0)
console.log(
  `${results.length} seeds, ${total(({ intents }) => intents)} intents, ${total(({ executed }) => executed)} executed, ${total(({ repeated }) => repeated)} repeated, ${((Date.now() - began) / 1000).toFixed(0)} s`,
)
console.log(
  violations.length === 0 ? 'no violations' : [...rules].map(([rule, of]) => `${rule}: ${of.length}`).join(', '),
)
process.exitCode = violations.length > 0 && !values.peer ? 1 : 0
