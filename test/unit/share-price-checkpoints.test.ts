import { expect, it } from 'vitest'
import { isCheckpointDue } from '../../src/scheduled/checkpoint-share-prices.ts'

const HOUR = 3_600n
const breaker = { newer: 1_000_000n, setAt: 100n * HOUR, jumpedTo: 0n, acceptedAt: 0n, isOpen: false }
const dueAt = (hours: bigint, changes: Partial<typeof breaker> = {}, moveWindow = 60n) =>
  isCheckpointDue({ ...breaker, ...changes }, moveWindow, breaker.setAt + hours * HOUR)

it('a share price is recorded once its anchor is nearly a day old, or half a longer window', () => {
  expect([dueAt(22n), dueAt(23n), dueAt(40n, {}, 96n * HOUR), dueAt(48n, {}, 96n * HOUR)]).toEqual([
    false,
    true,
    false,
    true,
  ])
})

it('a vault without an anchor has no share price worth recording', () => {
  expect(dueAt(23n, { newer: 0n })).toBe(false)
})

it('an open breaker, and a jump that the call could accept, are left to the operator', () => {
  const acceptedAt = breaker.setAt + 23n * HOUR
  expect(dueAt(23n, { isOpen: true })).toBe(false)
  expect(dueAt(24n, { jumpedTo: 2_000_000n, acceptedAt })).toBe(false)
  expect(dueAt(26n, { jumpedTo: 2_000_000n, acceptedAt })).toBe(true)
})
