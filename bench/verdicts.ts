import type { Plan } from '../test/faults/plan.ts'
import { randomOf } from '../test/faults/random.ts'
import { startRig } from '../test/faults/rig.ts'
import { prepareService, startExpress } from '../test/faults/service.ts'

export type Verdicts = { intents: number; executed: number; wrong: number; rules: Record<string, number> }

const INTENTS = 300
const AGENTS = 40
const EACH = 0.05

/** A node that drops 5 % of the requests before it takes them and 5 % of its answers after it did. */
const plan: Plan = {
  ...{ seed: 1, intents: INTENTS, agents: AGENTS, faultRate: 2 * EACH, urls: 1, events: [] },
  ...{ isSequencer: false, hasZeroHash: false, liesAbout: () => false },
  fateOf(content, ordinal) {
    const share = randomOf('bench', content, ordinal).next()
    return { is: share < EACH ? 'drop' : share < 2 * EACH ? 'cut' : 'forward' }
  },
}

/** What service and peer tell their clients behind such a node, held against the chain. */
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
