import { expect, it } from 'vitest'
import { streamPlacesOf } from '../../src/live/client.ts'

it.each([
  [250, 16],
  [4_000, 16],
  [999, 3],
  [1, 16],
  [100_000, 256],
])('the objects of an address hold %i streams, of %i objects', (maxStreams, objects) => {
  const places = streamPlacesOf(['192.0.2.1'], maxStreams, objects)
  expect(places.reduce((sum, place) => sum + place.maxStreams, 0)).toBe(maxStreams)
  expect(new Set(places.map(({ object }) => object)).size).toBe(places.length)
  expect(places.every(({ object }) => object >= 0 && object < objects)).toBe(true)
})

it('an address uses the first object, and another only for more than fifty streams or if the first one is full', () => {
  const [first, other, ...more] = streamPlacesOf(['192.0.2.1'], 250, 16)
  expect(first).toEqual({ object: 0, maxStreams: 50 })
  expect(other?.object).toBeGreaterThan(0)
  expect(more).toEqual([])
  expect(streamPlacesOf(['192.0.2.1'], 250, 1)).toEqual([{ object: 0, maxStreams: 250 }])
})

it('the objects after the first one are spread evenly over addresses', () => {
  const counts = Array.from({ length: 15 }, () => 0)
  for (let client = 0; client < 3_750; client++) {
    const object = streamPlacesOf([`10.0.${client >> 8}.${client & 255}`], 250, 16)[1]?.object ?? 0
    counts[object - 1] = (counts[object - 1] ?? 0) + 1
  }
  expect(Math.min(...counts)).toBeGreaterThan(150)
  expect(Math.max(...counts)).toBeLessThan(350)
})
