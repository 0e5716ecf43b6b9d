import { expect, test } from 'vitest'
import { createInFlightLimit } from '../../src/executor/in-flight-limit.ts'
import type { IntentKind } from '../../src/executor/relay-types.ts'

test('a full lane admits risk-reducing intents and sends them first', async () => {
  const limit = createInFlightLimit()
  const deadline = Date.now() + 60_000
  let groups = 0
  const enter = (kind: IntentKind) => limit.enter({ kind, group: `agent:${++groups}` })
  const enterAll = (kind: IntentKind) => {
    const tickets = []
    for (let ticket = enter(kind); ticket; ticket = enter(kind)) tickets.push(ticket)
    return tickets
  }

  const others = enterAll('open')
  const [first, ...rest] = others
  const order: string[] = []
  for (const ticket of others.slice(0, limit.depth())) await ticket.waitForSlot(deadline)
  const waits = rest.slice(limit.depth() - 1).map(async ticket => {
    await ticket.waitForSlot(deadline)
    order.push('open')
    ticket.release()
  })
  const exits = (['reduce', 'owner'] as const).map(async kind => {
    const ticket = enter(kind)
    await ticket?.waitForSlot(deadline)
    order.push(kind)
    ticket?.release()
  })
  first?.release()
  await Promise.all([...waits, ...exits])
  expect(order.slice(0, 2)).toEqual(['reduce', 'owner'])
  expect(order).toHaveLength(256 + 2)
})

test('a lane admits a bounded number of risk-reducing intents', () => {
  const limit = createInFlightLimit()
  let groups = 0
  while (limit.enter({ kind: 'reduce', group: `agent:${++groups}` }));
  expect(groups - 1).toBe(limit.depth() + 256 + 128)
})
