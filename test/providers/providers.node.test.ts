import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { prepareService } from '../faults/service.ts'
import { type ProviderName, providerNames } from './profiles.ts'
import { type ProviderRig, startProviderRig } from './run.ts'

// A dose of `npm run providers`: one service, whose provider changes from test to test, with agents that trade once
// through every kind of intent.

const FIRST: ProviderName = 'lagging-pool'
/** Two registrations, and five intents of each agent. */
const INTENTS = 12

let remove = () => {}
let rig: ProviderRig
beforeAll(async () => {
  const service = await prepareService()
  remove = service.remove
  rig = await startProviderRig(service.start, { name: FIRST, seed: 1 })
})
afterAll(async () => {
  await rig?.stop()
  remove()
})

describe('behind a provider', () => {
  test.each([FIRST, ...providerNames.filter(name => name !== FIRST)].map((name, seed) => [name, seed] as const))(
    'behind the provider %s honest agents are refused nothing, told nothing false, and miss no event',
    async (name, seed) => {
      await rig.become(name)
      const { attempts, succeeded, intents, refusals, falsehoods, missing, doubled } = await rig.trade({
        seed,
        rounds: 1,
        agents: 2,
      })
      expect({ falsehoods, missing, doubled }).toEqual({ falsehoods: [], missing: [], doubled: [] })
      expect({ succeeded, refusals, intents }).toEqual({ succeeded: attempts, refusals: {}, intents: INTENTS })
    },
  )
})
