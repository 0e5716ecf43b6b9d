/** What a node that refuses a range of logs says that it would give: so many blocks, or nothing of use. */
export function blocksAllowed(message: string): number | undefined {
  for (const pattern of suggestedRanges) {
    const [, from, to] = pattern.exec(message) ?? []
    if (from !== undefined && to !== undefined) return Math.max(1, Number(to) - Number(from) + 1)
  }
  for (const pattern of limits) {
    const [, digits, unit] = pattern.exec(message) ?? []
    if (digits === undefined) continue
    const count = Number(digits.replaceAll(/[,_]/g, '')) * (unit?.toLowerCase() === 'k' ? 1_000 : 1)
    if (count > 0) return count
  }
  return undefined
}

const number = '(0x[0-9a-f]+|\\d+)'
// "…this block range should work: [0x0, 0xd0]", "Try with this block range [0xBD, 0x10]", "retry with the range 1-63"
const suggestedRanges = [
  new RegExp(`range[^[\\d]*\\[${number},\\s*${number}\\]`, 'i'),
  new RegExp(`range ${number}-${number}`, 'i'),
]
const amount = '(\\d[\\d,_]*)\\s*(k)?'
const limits = [
  new RegExp(`(?:limited to|up to) (?:an? )?(?:range of )?${amount}\\s*(?:blocks?|range)`, 'i'),
  new RegExp(`max(?:imum)?(?! results| logs| response)[^\\d]*${amount}`, 'i'),
  new RegExp(`(?:over|exceeds?|more than|greater than) ${amount}\\s*blocks?`, 'i'),
]

/** Whether a node refuses for now, whatever the range. */
export const isOverload = (message: string) =>
  /rate.?limit|too many requests|requests? per second|compute units|throughput|capacity|quota|overloaded/i.test(message)

const FIRST = 2_000
const LARGEST = 1_000_000
/** After so many ranges without a refusal a larger one is tried again: a limit may be of logs and not of blocks. */
const PATIENCE = 50
/** More logs than this at once are more than is good for memory and for the transaction that writes them. */
const MANY_LOGS = 10_000
const FEW_LOGS = 4_000

/** How many blocks' logs are asked for at once: more while the node gives them, what it allows or half when it refuses. */
export function createRanges() {
  let size = FIRST
  let refused = Number.POSITIVE_INFINITY
  let given = 0
  return {
    size: () => size,
    /** A range was given with so many logs. Only one that was asked for in full says anything of larger ones. */
    accept(blocks: number, logs: number) {
      if (logs > MANY_LOGS) size = Math.max(1, Math.floor(Math.min(size, blocks) / 2))
      if (blocks < size) return
      if (++given >= PATIENCE) {
        refused = Number.POSITIVE_INFINITY
        given = 0
      }
      if (logs < FEW_LOGS) size = Math.min(size * 2, LARGEST, Math.max(size, refused - 1))
    },
    /** A range was refused; answers whether a smaller one can be tried. */
    refuse(blocks: number, message: string): boolean {
      refused = blocks
      given = 0
      const allowed = blocksAllowed(message)
      size = Math.max(1, allowed !== undefined && allowed < blocks ? allowed : Math.floor(blocks / 2))
      return blocks > 1
    },
  }
}
