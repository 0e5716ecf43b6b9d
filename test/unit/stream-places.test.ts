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

it('the objects of an address are spread evenly over all objects', () => {
  const counts = Array.from({ length: 16 }, () => 0)
  for (let client = 0; client < 4_000; client++) {
    const [{ object = 0 } = {}] = streamPlacesOf([`10.0.${client >> 8}.${client & 255}`], 250, 16)
    counts[object] = (counts[object] ?? 0) + 1
  }
  expect(Math.min(...counts)).toBeGreaterThan(150)
  expect(Math.max(...counts)).toBeLessThan(350)
})
