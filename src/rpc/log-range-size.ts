import { isRateLimit, type RpcError } from './node-errors.ts'

const NUMBER = '(0x[0-9a-f]+|\\d+)'
const AMOUNT = '(\\d[\\d,_]*)\\s*(k)?'

// "…this block range should work: [0x0, 0xd0]", "Try with this block range [0xBD, 0x10]", "retry with the range 1-63"
const SUGGESTED_RANGES = [
  new RegExp(`range[^[\\d]*\\[${NUMBER},\\s*${NUMBER}\\]`, 'i'),
  new RegExp(`range ${NUMBER}-${NUMBER}`, 'i'),
]
const LIMITS = [
  new RegExp(`(?:limited to|up to) (?:an? )?(?:range of )?${AMOUNT}\\s*(?:blocks?|range)`, 'i'),
  new RegExp(`max(?:imum)?(?! results| logs| response)[^\\d]*${AMOUNT}`, 'i'),
  new RegExp(`(?:over|exceeds?|more than|greater than) ${AMOUNT}\\s*blocks?`, 'i'),
]

/** Returns the number of blocks that a node's error about `eth_getLogs` allows; undefined if the error names none. */
export function parseBlockLimit(message: string): number | undefined {
  for (const pattern of SUGGESTED_RANGES) {
    const [, from, to] = pattern.exec(message) ?? []
    if (from !== undefined && to !== undefined) return Math.max(1, Number(to) - Number(from) + 1)
  }
  for (const pattern of LIMITS) {
    const [, digits, unit] = pattern.exec(message) ?? []
    if (digits === undefined) continue
    const count = Number(digits.replaceAll(/[,_]/g, '')) * (unit?.toLowerCase() === 'k' ? 1_000 : 1)
    if (count > 0) return count
  }
  return undefined
}

/** Returns whether a node rejects `eth_getLogs` for now, independent of the range. */
export const isOverload = (message: string): boolean =>
  isRateLimit({ code: 0, message }) || /compute units|capacity|quota|overloaded/i.test(message)

/** Returns whether a node rejects `eth_getLogs` because its filter has too many topics, whatever the range. */
export const isTopicLimit = (message: string): boolean =>
  /\b(max|limit|exceed|too many|more than).*\btopics?\b/i.test(message)

/**
 * How often a request for logs is sent again that a node refuses although it is not asked too often: some public nodes
 * refuse up to half of them at any pace and any range.
 */
export const REFUSED_SENDS = 5

/** Returns whether a node refuses `eth_getLogs` for now, and does not ask for a pause. */
export const isRefusedForNow = (error: RpcError | undefined): boolean =>
  error !== undefined && isOverload(error.message) && !isRateLimit(error)

/** Nodes that limit the number of logs, and return the first ones without an error, have such limits. */
const TRUNCATED_MULTIPLE = 1_000

/** Returns whether a node may have returned only the first logs of a range: those of fewer blocks may be complete. */
export const mayBeTruncated = (logs: number): boolean => logs > 0 && logs % TRUNCATED_MULTIPLE === 0

const INITIAL_BLOCKS = 2_000
const MAX_BLOCKS = 1_000_000
/** After this many ranges without an error a rejected size is tried again: the limit may be on logs, not on blocks. */
const RANGES_UNTIL_RETRY = 50
/** A response with more logs than this is too large for memory and for the transaction that writes them. */
const MANY_LOGS = 10_000
/** A response with fewer logs than this leaves room for a larger range. */
const FEW_LOGS = 4_000

/**
 * Creates the adaptive number of blocks per `eth_getLogs` request: it doubles while the node accepts it, and falls to
 * what the node allows, or to half, when the node rejects it. `remembered` is such a number.
 */
export function createLogRangeSize(remembered = INITIAL_BLOCKS) {
  let size = remembered
  let rejected = remembered < INITIAL_BLOCKS ? remembered + 1 : Number.POSITIVE_INFINITY
  let acceptedInARow = 0
  return {
    blocks: () => size,
    /**
     * Records that a range of `blocks` returned `logs` logs. Only a range of the full size shows whether a larger one
     * may work.
     */
    accept(blocks: number, logs: number): void {
      if (logs > MANY_LOGS) size = Math.max(1, Math.floor(Math.min(size, blocks) / 2))
      if (blocks < size) return
      if (++acceptedInARow >= RANGES_UNTIL_RETRY) {
        rejected = Number.POSITIVE_INFINITY
        acceptedInARow = 0
      }
      if (logs < FEW_LOGS) size = Math.min(size * 2, MAX_BLOCKS, Math.max(size, rejected - 1))
    },
    /** Records that the node rejected a range with a message. Returns whether a smaller range can be tried. */
    reject(blocks: number, message: string): boolean {
      rejected = blocks
      acceptedInARow = 0
      const allowed = parseBlockLimit(message)
      size = Math.max(1, allowed !== undefined && allowed < blocks ? allowed : Math.floor(blocks / 2))
      return blocks > 1
    },
  }
}
