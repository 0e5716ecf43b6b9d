import { numberToHex } from 'viem'
import { vi } from 'vitest'
import type { GasBudgets as Limits } from '../../src/config/config.ts'
import { createGasBudgets } from '../../src/executor/gas-budgets.ts'
import { createInFlightLimit } from '../../src/executor/in-flight-limit.ts'
import { groupOf } from '../../src/executor/requester.ts'
import { type Crowd, type CrowdKind, gasOf, type Sender, useOf } from './lane-day.ts'
import { randomOf } from './seeded-random.ts'

// Some minutes of a lane in which a crowd wants all of its places, on a clock that is moved.

const TICK_MS = 500
const SIMULATION_MS = 100
/** As by default, how long an intent waits for its transaction. */
const INCLUSION_MS = 15_000
const MAX_PER_AGENT = 4
/** How long an honest sender repeats a request. */
const PATIENCE_MS = 60_000

/**
 * Returns which part of the requests of honest agents is mined within a minute, repeated after the waits that the
 * refusals name, while each agent of a crowd always has four requests under way. Needs the fake timers of vitest.
 */
export async function successOfRush(
  limits: Limits,
  crowd: Crowd,
  { minutes, blockMs, honest }: { minutes: number; blockMs: number; honest: number },
) {
  const random = randomOf('lane rush', crowd.agents)
  const start = Date.now()
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits)
  const places = createInFlightLimit()
  let digests = 0
  let block = Promise.withResolvers<void>()

  /** Returns the seconds to wait; undefined if the request was mined, or failed as it had to. */
  async function relay(sender: Sender, kind: CrowdKind): Promise<number | undefined> {
    const use = useOf(sender, kind)
    const digest = numberToHex(++digests)
    const usedGas = budgets.usedBy(use)
    const shortage = budgets.admit(digest, use)
    if (shortage) return shortage.retryAfterSeconds
    const ticket = places.enter({ kind: use.kind, group: groupOf(use) }, usedGas)
    try {
      const deadline = Date.now() + INCLUSION_MS
      if (!ticket || !(await ticket.waitForTurn(deadline)) || !(await ticket.waitForSlot(deadline))) return 1
      await new Promise(resolve => setTimeout(resolve, SIMULATION_MS))
      if (kind === 'failure') return void budgets.chargeFailure(use)
      const { gas, limit } = gasOf(kind)
      const spenders = budgets.reserve(digest, use, limit)
      if (!Array.isArray(spenders)) return spenders.retryAfterSeconds
      await block.promise
      places.recordSuccess()
      budgets.charge([{ spenders, gas, isReverted: kind === 'revert' }])
      return undefined
    } finally {
      ticket?.release()
      budgets.release(digest)
    }
  }

  const underWay = new Map<number, number>()
  function attack() {
    for (let agent = 0; agent < crowd.agents; agent++) {
      const sender = { id: agent, isYoung: crowd.isYoung }
      for (let count = underWay.get(sender.id) ?? 0; count < MAX_PER_AGENT; count++) {
        underWay.set(sender.id, (underWay.get(sender.id) ?? 0) + 1)
        void relay(sender, random.pick(crowd.kinds)).finally(() =>
          underWay.set(sender.id, (underWay.get(sender.id) ?? 0) - 1),
        )
      }
    }
  }

  /** What each honest agent wants next, since when, and when it may ask again. */
  const wishes = Array.from({ length: honest }, (_, index) =>
    (['open', 'open', 'reduce'] as const).map((kind, part) => {
      const since = start + ((part + random.next()) / 3) * (minutes * 60_000 - PATIENCE_MS)
      return {
        sender: { id: crowd.agents + index, isYoung: false },
        kind,
        since,
        next: since,
        state: 'wanted' as string,
      }
    }),
  ).flat()
  function trade() {
    const now = Date.now()
    for (const wish of wishes) {
      if (wish.state !== 'wanted' || wish.next > now || now - wish.since > PATIENCE_MS) continue
      wish.state = 'under way'
      void relay(wish.sender, wish.kind).then(wait => {
        wish.state = wait === undefined && Date.now() - wish.since <= PATIENCE_MS ? 'mined' : 'wanted'
        wish.next = Date.now() + (wait ?? 0) * 1_000
      })
    }
  }

  for (let tick = 1; Date.now() - start < minutes * 60_000; tick++) {
    attack()
    trade()
    await vi.advanceTimersByTimeAsync(TICK_MS)
    if ((tick * TICK_MS) % blockMs !== 0) continue
    block.resolve()
    block = Promise.withResolvers<void>()
  }
  return wishes.filter(({ state }) => state === 'mined').length / wishes.length
}
