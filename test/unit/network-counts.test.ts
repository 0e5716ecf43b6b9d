import { expect, test } from 'vitest'
import { createNetworkCounts } from '../../src/limits/network-counts.ts'
import type { Networks } from '../../src/requests/client-address.ts'

const site = (index: number, network: number): Networks => [
  `2001:db8:${index}:${network.toString(16)}`,
  `2001:db8:${index}:${(network & 0xff00).toString(16)}/56`,
  `2001:db8:${index}/48`,
]

test('a /56 holds four times as much as a /64, and a /48 sixteen times', () => {
  const counts = createNetworkCounts({ perAddress: 2, total: 1_000 })
  const fill = (networksOf: (index: number) => Networks) => {
    let held = 0
    for (let index = 0; index < 100; index++) {
      if (!counts.hasRoom(networksOf(index))) continue
      counts.add(networksOf(index))
      held++
    }
    return held
  }
  expect(fill(() => ['192.0.2.1'])).toBe(2)
  expect(fill(() => site(1, 1))).toBe(2)
  expect(fill(index => site(1, index))).toBe(6)
  expect(fill(index => site(1, index << 8))).toBe(24)
  expect(counts.size()).toBe(34)
  counts.remove(['192.0.2.1'])
  expect(counts.hasRoom(['192.0.2.1'])).toBe(true)
})

test('the network that holds most gives way, as wide as it is counted, unless the client holds as much', () => {
  const counts = createNetworkCounts({ perAddress: 10, total: 5 })
  for (let index = 0; index < 4; index++) counts.add(site(1, index))
  counts.add(['192.0.2.1'])
  expect(counts.isFull()).toBe(true)
  expect(counts.holderOfMost(['192.0.2.2'])).toBe('2001:db8:1/48')
  expect(counts.holderOfMost(site(1, 99))).toBeUndefined()
  counts.remove(site(1, 0))
  counts.remove(site(1, 1))
  counts.remove(site(1, 2))
  expect(counts.holderOfMost(['192.0.2.2'])).toBeUndefined()
})
