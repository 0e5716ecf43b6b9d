import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { runClientAgent } from './client-agents.ts'
import { planOf } from './plan.ts'
import { type Rig, startRig } from './rig.ts'
import { prepareService } from './service.ts'

const SEEDS = inject('isLong') ? 20 : 1
const INTENTS = inject('isLong') ? 60 : 20
const RIGS = 2

let rigs: Rig[] = []
let remove = () => {}
beforeAll(async () => {
  const prepared = await prepareService()
  remove = prepared.remove
  rigs = await Promise.all(Array.from({ length: RIGS }, () => startRig(prepared.start, runClientAgent)))
})
afterAll(async () => {
  await Promise.all(rigs.map(rig => rig.stop()))
  remove()
})

test(`in each of ${SEEDS} seeds agents on the TypeScript client never trade twice`, {
  timeout: SEEDS * 120_000,
}, async () => {
  const seeds = Array.from({ length: SEEDS }, (_, index) => index + 1)
  const failed: string[] = []
  let total = 0
  const work = async (rig: Rig) => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const { violations, executed } = await rig.run({ ...planOf(seed, INTENTS), isPaid: false, hasOrders: false })
      total += executed
      for (const { rule, what } of violations) failed.push(`seed ${seed}: ${rule}: ${what}`)
    }
  }
  await Promise.all(rigs.map(work))
  expect(failed).toEqual([])
  // Of all seeds together: a reorg that takes back registrations can give agents other ids, so that they trade no more.
  expect(total).toBeGreaterThan((SEEDS * INTENTS) / 2)
})
