import type { Address, Hex } from 'viem'

export type RpcError = { code: number; message: string; data?: Hex }
export type Answer = { result: unknown; error?: undefined } | { result?: undefined; error: RpcError }
type Request = { method: string; params: readonly unknown[] }

/** A receipt as the node writes it; `blockHash` is zero where a sequencer answers before it has sealed the block. */
export type Receipt = {
  transactionHash: Hex
  blockNumber: Hex
  blockHash: Hex | null
  status: Hex
  gasUsed: Hex
  logs: { address: Address; topics: Hex[]; data: Hex }[]
}

/** No configured node gave an answer. It carries no cause: the cause names the URL, and URLs hold keys. */
export class Unreachable extends Error {
  override name = 'Unreachable'
}

/** What a node said to signed bytes; all but `malformed` leave open whether another node holds them. `unknown` said nothing. */
export type Submission =
  | { is: 'mined'; receipt: Receipt }
  | { is: 'accepted' | 'nonce-too-low' | 'nonce-too-high' | 'fee-too-low' | 'underpriced' | 'unfunded' | 'unknown' }
  | { is: 'malformed' | 'unclassified'; message: string }

export type Rpc = {
  /** Asks the nodes in turn until one answers; throws Unreachable. */
  call(method: string, params: readonly unknown[]): Promise<Answer>
  /** Several requests to one node in one round trip; throws Unreachable when no node's answers are accepted. */
  batch(requests: readonly Request[], accept?: (answers: Answer[]) => boolean): Promise<Answer[]>
  /** Hands signed bytes to one node: the next call takes another one where this one failed. Never throws. */
  submit(raw: Hex, options: { waitMs: number; sync: boolean }): Promise<Submission>
}

const TIMEOUT_MS = 5_000
/** How long a node that failed is asked last. */
const REST_MS = 2_000

type Endpoint = { url: string; restUntil: number; sync: boolean }

/** JSON-RPC over several nodes with failover; of a failure nothing is told but that it happened. */
export function createRpc(urls: readonly string[]): Rpc {
  const endpoints: Endpoint[] = urls.map(url => ({ url, restUntil: 0, sync: true }))
  let id = 0

  const inOrder = () => {
    const now = Date.now()
    return endpoints.toSorted((a, b) => Math.max(a.restUntil - now, 0) - Math.max(b.restUntil - now, 0))
  }
  const rest = (endpoint: Endpoint) => {
    endpoint.restUntil = Date.now() + REST_MS
  }

  async function post(endpoint: Endpoint, body: unknown, timeoutMs: number): Promise<unknown> {
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(new DOMException('no answer in time', 'TimeoutError')), timeoutMs)
    try {
      const response = await fetch(endpoint.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: controller.signal,
      })
      return await response.json()
    } finally {
      clearTimeout(timer)
    }
  }
  /** Posts what may be asked twice: a connection that was kept alive may end just as it is used again. */
  async function read(endpoint: Endpoint, body: unknown): Promise<unknown> {
    try {
      return await post(endpoint, body, TIMEOUT_MS)
    } catch (error) {
      if (isTimeout(error)) throw error
      return post(endpoint, body, TIMEOUT_MS)
    }
  }
  const envelope = ({ method, params }: Request) => ({ jsonrpc: '2.0', id: ++id, method, params })

  async function send(endpoint: Endpoint, request: Request, timeoutMs: number): Promise<Answer> {
    const answer = parseAnswer(await post(endpoint, envelope(request), timeoutMs))
    if (answer === undefined) throw new Unreachable()
    return answer
  }

  async function call(method: string, params: readonly unknown[]): Promise<Answer> {
    for (const endpoint of inOrder()) {
      try {
        let answer = parseAnswer(await read(endpoint, envelope({ method, params })))
        if (answer?.error && isBetweenBlocks(answer.error))
          answer = parseAnswer(await read(endpoint, envelope({ method, params })))
        if (answer && (answer.error === undefined || !isNodeFault(answer.error))) return answer
      } catch {
        // the next node may answer
      }
      rest(endpoint)
    }
    throw new Unreachable()
  }

  async function batch(requests: readonly Request[], accept = (_: Answer[]) => true): Promise<Answer[]> {
    for (const endpoint of inOrder()) {
      try {
        const bodies = requests.map(envelope)
        const replies = await read(endpoint, bodies)
        const answers = bodies.map(({ id }) =>
          parseAnswer(Array.isArray(replies) ? replies.find(reply => reply?.id === id) : undefined),
        )
        if (answers.every(answer => answer !== undefined) && accept(answers)) return answers
      } catch {
        // the next node may answer
      }
      rest(endpoint)
    }
    throw new Unreachable()
  }

  async function submit(raw: Hex, { waitMs, sync }: { waitMs: number; sync: boolean }): Promise<Submission> {
    const [endpoint] = inOrder()
    if (endpoint === undefined) return { is: 'unknown' }
    const asksSync = sync && endpoint.sync
    try {
      // One parameter only: nodes disagree on the form of a timeout, so the deadline is our own.
      const answer = asksSync
        ? await send(endpoint, { method: 'eth_sendRawTransactionSync', params: [raw] }, waitMs)
        : await send(endpoint, { method: 'eth_sendRawTransaction', params: [raw] }, Math.min(waitMs, TIMEOUT_MS))
      if (answer.error === undefined) return ofResult(answer.result)
      if (asksSync && isUnsupported(answer.error)) {
        endpoint.sync = false
        return submit(raw, { waitMs, sync: false })
      }
      const submission = classify(answer.error)
      if (submission.is === 'unknown' || submission.is === 'unclassified') rest(endpoint)
      return submission
    } catch (error) {
      // A node that is only slow to include is not at fault: the wait was ours.
      if (!(asksSync && isTimeout(error))) rest(endpoint)
      return { is: 'unknown' }
    }
  }

  return { call, batch, submit }
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === 'TimeoutError'

function parseAnswer(reply: unknown): Answer | undefined {
  if (typeof reply !== 'object' || reply === null) return undefined
  if ('error' in reply && typeof reply.error === 'object' && reply.error !== null) {
    const { code, message, data } = reply.error as Record<string, unknown>
    return {
      error: {
        code: typeof code === 'number' ? code : 0,
        message: typeof message === 'string' ? message : '',
        ...(isHex(data) && { data }),
      },
    }
  }
  return 'result' in reply ? { result: reply.result } : undefined
}

const isHex = (value: unknown): value is Hex => typeof value === 'string' && /^0x[0-9a-fA-F]*$/.test(value)

function ofResult(result: unknown): Submission {
  if (typeof result !== 'object' || result === null) return { is: 'accepted' }
  const receipt = result as Receipt
  return isHex(receipt.blockNumber) && isHex(receipt.status) ? { is: 'mined', receipt } : { is: 'accepted' }
}

/** Whether a node answered that it does not know the method. */
const isUnsupported = ({ code, message }: RpcError) =>
  code === -32601 || /method .*(not found|not available|not supported|does not exist)|unsupported method/i.test(message)

/** Whether the head moved, or was not there yet, while the node looked for it: anvil does so at every block. */
const isBetweenBlocks = ({ message }: RpcError) => /BlockOutOfRange|header not found|unknown block/i.test(message)

/** Whether an error tells of the node and not of the call: another node may do better. */
const isNodeFault = (error: RpcError) => isBetweenBlocks(error) || isLimit(error)
const isLimit = ({ code, message }: RpcError) =>
  [-32005, -32029, 429].includes(code) ||
  /rate limit|too many requests|missing trie node|timed? ?out|capacity|overloaded|unavailable|internal error/i.test(
    message,
  )

// Texts of geth, Nitro, anvil, erigon and reth. The order matters: `replacement transaction underpriced` is no fee bound.
const texts = [
  [/already known|already imported|already exists|(?<!un)known transaction/i, 'accepted'],
  [/confirmation timeout|was added to the (mempool|txpool) but/i, 'accepted'],
  [/nonce (is )?too low|nonce has already been used|old nonce/i, 'nonce-too-low'],
  [/nonce (is )?too high|nonce gap|nonce .*out of range/i, 'nonce-too-high'],
  [/replacement transaction underpriced|replacement fee too low/i, 'underpriced'],
  [/less than (the )?block base fee|fee cap .*base ?fee|transaction underpriced|fee too low/i, 'fee-too-low'],
  [/insufficient funds/i, 'unfunded'],
] as const

// Nothing in the pool can make such bytes valid. A wrong chain id is not among them: our bytes are right, the node is not.
const malformed =
  /intrinsic gas|exceeds block gas limit|gas limit (is )?too high|oversized|max initcode|rlp|type not supported/i

/** What a refusal of signed bytes means; whatever is not known leaves the outcome open. */
export function classify({ code, message }: RpcError): Submission {
  for (const [text, is] of texts) if (text.test(message)) return { is }
  if (malformed.test(message)) return { is: 'malformed', message: redact(message) }
  if (code === 4) return { is: 'accepted' }
  return isLimit({ code, message }) || isWrongChain(message)
    ? { is: 'unknown' }
    : { is: 'unclassified', message: redact(message) }
}

const isWrongChain = (message: string) => /chain ?id/i.test(message)

/** A node's text without what could name a URL or hold a key, cut to a sentence's length. */
export function redact(message: string): string {
  const safe = message.replaceAll(/https?:\/\/\S+/gi, '<url>').replaceAll(/(0x)?[0-9a-f]{64,}/gi, '<data>')
  return safe.length > 200 ? `${safe.slice(0, 200)}…` : safe
}
