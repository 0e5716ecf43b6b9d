export type Random = {
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  next(): number
  /** Returns true with the given probability. */
  chance(probability: number): boolean
  /** Returns an integer from `from` to `to`, both inclusive. */
  integer(from: number, to: number): number
  pick<Choice>(choices: readonly Choice[]): Choice
}

/** Returns a generator whose numbers depend only on its seeds (mulberry32 over their FNV-1a hash). */
export function randomOf(...seeds: (string | number)[]): Random {
  let state = hashOf(seeds.join(' '))
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    chance: probability => next() < probability,
    integer: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick(choices) {
      const choice = choices[Math.floor(next() * choices.length)]
      if (choice === undefined) throw new Error('There is nothing to pick from')
      return choice
    },
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}
