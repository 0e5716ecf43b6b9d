import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { planOf } from './plan.ts'
import { type Rig, startRig } from './rig.ts'
import { prepareService } from './service.ts'

const SEEDS = inject('isLong') ? 200 : 3
const INTENTS = inject('isLong') ? 40 : 20
/** The number of chains with a service that run in parallel. A seed mostly waits. */
const RIGS = 2

let rigs: Rig[] = []
let remove = () => {}
beforeAll(async () => {
  const prepared = await prepareService()
  remove = prepared.remove
  rigs = await Promise.all(Array.from({ length: RIGS }, () => startRig(prepared.start)))
})
afterAll(async () => {
  await Promise.all(rigs.map(rig => rig.stop()))
  remove()
})

describe('under all faults of a seed', () => {
  test(`in each of ${SEEDS} seeds ${INTENTS} intents are executed at most once, and every response is true`, {
    timeout: SEEDS * 120_000,
  }, async () => {
    const seeds = Array.from({ length: SEEDS }, (_, index) => index + 1)
    const failed: string[] = []
    const work = async (rig: Rig) => {
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
        const { violations, intents } = await rig.run(planOf(seed, INTENTS))
        expect(intents).toBeGreaterThanOrEqual(INTENTS)
        for (const { rule, what } of violations)
          failed.push(`${rule}: ${what} (npm run faults -- --seed ${seed} --intents ${INTENTS})`)
      }
    }
    await Promise.all(rigs.map(work))
    expect(failed).toEqual([])
  })
})
