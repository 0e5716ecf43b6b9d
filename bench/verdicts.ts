import type { FaultPlan } from '../test/faults/plan.ts'
import { startRig } from '../test/faults/rig.ts'
import { prepareService, startExpress } from '../test/faults/service.ts'
import { randomOf } from '../test/support/seeded-random.ts'

export type Verdicts = { intents: number; executed: number; wrong: number; rules: Record<string, number> }

const INTENTS = 300
const AGENTS = 40
const EACH = 0.05

/** The node drops 5 % of requests before it executes them, and 5 % of responses afterwards. */
const plan: FaultPlan = {
  seed: 1,
  intents: INTENTS,
  agents: AGENTS,
  faultRate: 2 * EACH,
  urls: 1,
  events: [],
  isSequencer: false,
  hasZeroHash: false,
  isResponseWrong: () => false,
  fateOf(content, ordinal) {
    const share = randomOf('bench', content, ordinal).next()
    return { kind: share < EACH ? 'drop' : share < 2 * EACH ? 'cut' : 'forward' }
  },
}

/** Compares what the service and the baseline relay return to their clients with the chain. */
export async function measureVerdicts(): Promise<Record<'service' | 'peer', Verdicts>> {
  const { start, remove } = await prepareService()
  const run = async (subject: typeof start): Promise<Verdicts> => {
    const rig = await startRig(subject)
    try {
      const { intents, executed, violations } = await rig.run(plan)
      const rules = Object.fromEntries(
        [...Map.groupBy(violations, ({ rule }) => rule)].map(([rule, of]) => [rule, of.length]),
      )
      return { intents, executed, wrong: violations.length, rules }
    } finally {
      await rig.stop()
    }
  }
  try {
    return { service: await run(start), peer: await run(startExpress) }
  } finally {
    remove()
  }
}
