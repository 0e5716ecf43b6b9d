import { expect, it } from 'vitest'
import { createReadLoop } from '../../web/src/data/read-loop.ts'

/** A loop whose reads are responded to by hand, in the order in which they started. */
function createScene() {
  const open: ((value: string) => void)[] = []
  const applied: string[] = []
  const loop = createReadLoop(
    () => new Promise<string>(resolve => open.push(resolve)),
    value => applied.push(value),
  )
  async function respond(value: string) {
    open.shift()?.(value)
    await new Promise(setImmediate)
  }
  return { loop, open, applied, respond }
}

it('applies every response while changes come faster than reads', async () => {
  const { loop, open, applied, respond } = createScene()
  loop.request()
  for (const value of ['first', 'second', 'third']) {
    for (let change = 0; change < 5; change++) loop.request()
    expect(open).toHaveLength(1)
    await respond(value)
    expect(applied.at(-1)).toBe(value)
  }
  await respond('last')
  expect(applied).toEqual(['first', 'second', 'third', 'last'])
  expect(open).toEqual([])
  loop.request()
  expect(open).toHaveLength(1)
})

it('applies and reads nothing after it is stopped', async () => {
  const { loop, open, applied, respond } = createScene()
  loop.request()
  loop.request()
  loop.stop()
  await respond('late')
  expect([applied, open]).toEqual([[], []])
})
