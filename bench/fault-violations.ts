import type { FaultPlan } from '../test/faults/plan.ts'
import { startRig } from '../test/faults/rig.ts'
import { prepareService, startExpress } from '../test/faults/service.ts'
import { randomOf } from '../test/support/seeded-random.ts'

export type FaultViolations = { intents: number; executed: number; wrong: number; rules: Record<string, number> }

const INTENTS = 300
const AGENTS = 40
const SHARE_OF_EACH = 0.05

/** The node drops 5 % of requests before it executes them, and 5 % of responses afterwards. */
const plan: FaultPlan = {
  seed: 1,
  intents: INTENTS,
  agents: AGENTS,
  faultRate: 2 * SHARE_OF_EACH,
  urls: 1,
  isPaid: false,
  hasOrders: false,
  events: [],
  isSequencer: false,
  hasZeroHash: false,
  isResponseWrong: () => false,
  fateOf(content, ordinal) {
    const share = randomOf('bench', content, ordinal).next()
    return { kind: share < SHARE_OF_EACH ? 'drop' : share < 2 * SHARE_OF_EACH ? 'cut' : 'forward' }
  },
}

/** Counts the responses of the service and of the baseline relay that contradict the chain. */
export async function countFaultViolations(): Promise<Record<'service' | 'peer', FaultViolations>> {
  const { start, remove } = await prepareService()
  const run = async (subject: typeof start): Promise<FaultViolations> => {
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
