import type { Hex } from 'viem'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { logFailure } from '../log.ts'

/** An error that a node returned; `data` is the revert data of a call. */
export type RpcError = { code: number; message: string; data?: Hex }

/**
 * The cause of CHAIN_UNREACHABLE when nodes returned errors. It keeps only the last code, because messages can contain
 * keys.
 */
export class RefusedByNode extends Error {
  override name = 'RefusedByNode'
  readonly code: number
  constructor(method: string, code: number) {
    super(`the nodes refused ${method}, the last one with the code ${code}`)
    this.code = code
  }
}

/** Thrown if a node limits the rate of requests: it gets none until its pause is over. */
export class Throttled extends Error {
  override name = 'Throttled'
}

/** The cause of CHAIN_UNREACHABLE when nodes returned `0x` to a call that returns data on every healthy node. */
export class EmptyResult extends Error {
  override name = 'EmptyResult'
  constructor(method: string) {
    super(`the nodes returned no data to ${method}`)
  }
}

/** The cause of CHAIN_UNREACHABLE when no node has reached the block from which a read must come. */
export class BehindNode extends Error {
  override name = 'BehindNode'
  constructor(method: string) {
    super(`the nodes are behind for ${method}`)
  }
}

/**
 * Returns the refusal CHAIN_UNREACHABLE: no configured node gave a usable response. The cause must not contain messages
 * of `fetch` or of a node, because they can contain URLs with API keys.
 */
export const unreachable = (cause: string | RefusedByNode | EmptyResult | BehindNode): Refusal =>
  refuse('CHAIN_UNREACHABLE', {}, { cause: typeof cause === 'string' ? new Error(cause) : cause })

export const isUnreachable = (error: unknown): boolean =>
  error instanceof Refusal && error.body.code === 'CHAIN_UNREACHABLE'

/**
 * Logs an error of work that no caller waits for; pass it to `catch`. An unreachable node is not logged, because the
 * next reconciliation retries.
 */
export function logUnexpected(error: unknown): undefined {
  if (!isUnreachable(error)) logFailure('lane failure', error)
}

/** Returns undefined if no node was reachable and throws every other error; pass it to `catch`. */
export function ignoreUnreachable(error: unknown): undefined {
  if (!isUnreachable(error)) throw error
}

// In the words of anvil, geth, Nitro, reth, erigon, EDR and providers.
const LOST_BLOCK =
  /BlockOutOfRange|header (for hash )?not found|unknown block|\bblocks?\b.{0,80}\b(not|cannot be) found|beyond (the )?(current )?head|invalid block tag/i

/**
 * Returns whether the head block was replaced or not yet available during a read; anvil reports this at every block.
 */
export const isBlockLost = ({ message }: RpcError): boolean => LOST_BLOCK.test(message)

/**
 * Returns whether anvil no longer has the state of an old block. A node that is behind says the same of a block ahead.
 */
export const isBlockPruned = ({ message }: RpcError): boolean => {
  const [, height, requested] = /height is (\d+) but requested was (\d+)/.exec(message) ?? []
  return height !== undefined && Number(height) >= Number(requested)
}

// The last words are those of Chainstack, QuickNode, dRPC and Alchemy.
const RATE_LIMIT =
  /rate.?limit|too many requests?\b|(requests?|calls?|compute units) per second|RPS limit|request limit|throughput/i

export const isRateLimit = ({ code, message }: RpcError): boolean =>
  [-32029, 429].includes(code) || RATE_LIMIT.test(message)

/** Returns whether a node rejects requests for now: rate limits, overload, missing state. */
export const isLimit = (error: RpcError): boolean =>
  error.code === -32005 ||
  isRateLimit(error) ||
  /missing trie node|timed? ?out|capacity|overloaded|unavailable|internal error/i.test(error.message)

/** Returns whether an error is about the node and not about the request, so that another node may succeed. */
export const isNodeFault = (error: RpcError): boolean => isBlockLost(error) || isLimit(error)

export const isUnsupportedMethod = ({ code, message }: RpcError): boolean =>
  code === -32601 || /method .*(not found|not available|not supported|does not exist)|unsupported method/i.test(message)

/** The status with which a server rejects the size of a request. */
export const REQUEST_TOO_LARGE = 413

/** Returns whether the error of a whole batch says that the node rejects batches. Some nodes fail to parse a list. */
export const isBatchUnsupported = (error: RpcError): boolean =>
  /batch/i.test(error.message) ||
  (!isLimit(error) &&
    ([-32600, -32601, -32700, REQUEST_TOO_LARGE].includes(error.code) || /array|single request/i.test(error.message)))

/** The code with which nodes refuse to return a large result, and we to read one: a contract may return megabytes. */
export const RESULT_TOO_LARGE = -32008

/** Returns whether an error is a failure of the call, rather than of the node or the account. */
export const isCallFailure = ({ code, message, data }: RpcError): boolean =>
  code === 3 ||
  code === RESULT_TOO_LARGE ||
  data !== undefined ||
  /revert|out ?of ?gas|gas required exceeds|invalid opcode|EVM error/i.test(message)

/** What nodes say if the sender of a call or a transaction cannot pay for its gas. */
export const UNFUNDED = /insufficient ?funds|enough funds|cost exceeds account balance/i
export const isUnfunded = ({ message }: RpcError): boolean => UNFUNDED.test(message)

const MAX_REDACTED_LENGTH = 200

/**
 * Returns the first line of a node's text without what can contain API keys: URLs, paths, queries, headers and long
 * words with digits that are no addresses. Cut to 200 characters.
 */
export function redact(message: string): string {
  const [line = ''] = message.trim().split(/[\r\n]/)
  const safe = line
    .replaceAll(/\S*[/?{}"][^\s,;]*/g, '<url>')
    .replaceAll(/\b(?!0x[0-9a-f]{40}\b)(?=[\w-]*\d)[\w-]{20,}/gi, '<data>')
  return safe.length > MAX_REDACTED_LENGTH ? `${safe.slice(0, MAX_REDACTED_LENGTH)}…` : safe
}
