import { expect, test } from 'vitest'
import { createInFlightLimit } from '../../src/executor/in-flight-limit.ts'
import type { IntentKind } from '../../src/executor/relay-types.ts'

const MAX_WAITING = 256
let groups = 0

/** Opens a lane and takes all of its slots and its places for a kind, for agents that have used this much gas. */
async function fillLane(kind: IntentKind, usedGas: number) {
  const limit = createInFlightLimit()
  const deadline = Date.now() + 60_000
  const enter = (kind: IntentKind, usedGas = 0) => limit.enter({ kind, group: `agent:${++groups}` }, usedGas)
  const running = Array.from({ length: limit.depth() }, () => enter(kind, usedGas))
  for (const ticket of running) await ticket?.waitForSlot(deadline)
  const order: string[] = []
  const send = async (name: string, ticket = enter(kind, usedGas)) => {
    if (await ticket?.waitForSlot(deadline)) order.push(name)
    ticket?.release()
  }
  const sent = Array.from({ length: MAX_WAITING }, () => send('crowd'))
  const finish = async (...others: Promise<void>[]) => {
    running[0]?.release()
    await Promise.all([...sent, ...others])
    return order
  }
  return { enter, send, finish }
}

test('a full lane admits risk-reducing intents and sends them first', async () => {
  const { enter, send, finish } = await fillLane('open', 0)
  expect(enter('open')).toBeUndefined()
  const order = await finish(send('reduce', enter('reduce')), send('owner', enter('owner')))
  expect(order.slice(0, 2)).toEqual(['reduce', 'owner'])
  expect(order).toHaveLength(MAX_WAITING + 2)
})

test.for(['open', 'reduce'] as const)(
  'a lane full of %ss of agents that used much gives one place to an agent that used less, and sends it first',
  async kind => {
    const { enter, send, finish } = await fillLane(kind, 2_000_000)
    expect(enter(kind, 2_000_000)).toBeUndefined()
    const order = await finish(send('honest', enter(kind, 1_000_000)))
    expect(order[0]).toBe('honest')
    expect(order).toHaveLength(MAX_WAITING)
  },
)
