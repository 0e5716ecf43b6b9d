import { type Hex, isHex } from 'viem'
import { noteNodeTime } from '../clock.ts'
import { isTimeout, sleepUnlessAborted } from '../concurrency.ts'
import { logEvent } from '../log.ts'
import { count, observe } from '../metrics/recorder.ts'
import {
  isBatchUnsupported,
  isLimit,
  isNodeFault,
  isRateLimit,
  REQUEST_TOO_LARGE,
  RESULT_TOO_LARGE,
  type RpcError,
  Throttled,
} from './node-errors.ts'
import type { RpcRequest } from './requests.ts'

/** A node's response to a request: a result, or an error as a value. */
export type RpcResponse<Result = unknown> =
  | { result: Result; error?: undefined }
  | { result?: undefined; error: RpcError }

/** One node and its observed state. */
export type Endpoint = ReturnType<typeof createEndpoint>

/** About twice the size of the logs that the indexer reads at once. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024
/** Longer revert data is ignored: it is stored in journals, whose rows are limited to 2 MB. */
const MAX_REVERT_DATA_BYTES = 64 * 1024
const MAX_MESSAGE_LENGTH = 4_096
/** How many objects some nodes wrap around revert data, at most. */
const MAX_WRAPPERS = 2
/**
 * How long a node that limits the rate gets no requests if it does not say how long; doubled after each further limit
 * in a row.
 */
const MIN_THROTTLE_MS = 500
const MAX_THROTTLE_MS = 30_000
/** How long a node that rejects batches gets none. */
const BATCH_PAUSE_MS = 60_000
/** After this many batches in a row without a response, requests are sent one by one: a proxy may drop lists. */
const MAX_BROKEN_BATCHES = 2

/** The first batch of transactions to a node shows whether it holds each until it is in a block. */
export const MIN_SEND_BATCH = 4

/**
 * Creates the client of one node. `node` is its name in metrics. While a node limits the rate of requests, background
 * work fails at once and pauses twice as long as other requests, which wait, so that relays go first. A node that is
 * the only one gets the requests of a batch one by one if its reply is none to a batch. Nothing is sent yet.
 */
export function createEndpoint(
  url: string,
  node: string,
  { isBackground = false, isOnly = false }: { isBackground?: boolean; isOnly?: boolean } = {},
) {
  let lastId = 0
  let batchesPausedUntil = 0
  let brokenBatches = 0
  let gatewayStatus: number | undefined
  let loggedStatus: number | undefined
  let throttledUntil = 0
  let throttles = 0
  const envelope = ({ method, params }: RpcRequest) => ({ jsonrpc: '2.0', id: ++lastId, method, params })

  /** Sends requests as one HTTP request and parses the response. */
  async function exchange<Parsed>(
    body: unknown,
    signal: AbortSignal,
    requests: readonly RpcRequest[],
    parse: (reply: unknown) => Parsed,
    responsesOf: (parsed: Parsed) => readonly RpcResponse[] | undefined,
  ): Promise<Parsed> {
    await untilUnthrottled(signal)
    const startedAt = performance.now()
    const request = { node, methods: requests.map(({ method }) => method), startedAt }
    try {
      const parsed = parse(await post(body, signal, maxBytesOf(requests)))
      const responses = responsesOf(parsed)
      recordResponses(request, responses)
      const isLimited = responses?.some(({ error }) => error !== undefined && isRateLimit(error)) ?? false
      if (isLimited) throttle(undefined)
      else throttles = 0
      if (isLimited && responses?.length === 1) throw new Throttled()
      return parsed
    } catch (error) {
      if (!(error instanceof Throttled)) recordFailure(request, signal)
      throw error
    }
  }

  /** Stops requests to the node for as long as it names, or longer each time. */
  function throttle(headers: Headers | undefined) {
    const named = headers ? retryAfterMs(headers) : 0
    const pause = Math.min(named > 0 ? named : MIN_THROTTLE_MS * 2 ** throttles, MAX_THROTTLE_MS)
    throttles++
    throttledUntil = Math.max(throttledUntil, Date.now() + (isBackground ? 2 * pause : pause))
  }

  /** Waits until the node accepts requests again. Throws once the signal is aborted. */
  async function untilUnthrottled(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    for (let left = throttledUntil - Date.now(); left > 0; left = throttledUntil - Date.now()) {
      if (isBackground) throw new Throttled()
      await sleepUnlessAborted(left, signal)
      signal.throwIfAborted()
    }
  }

  async function post(body: unknown, signal: AbortSignal, maxBytes: number): Promise<unknown> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal,
    })
    noteNodeTime(node, response.headers.get('date'))
    if (response.status === 429 || (response.status === 503 && response.headers.has('retry-after'))) {
      await response.body?.cancel()
      throttle(response.headers)
      throw new Throttled()
    }
    gatewayStatus = isOfGateway(response) ? response.status : undefined
    if (gatewayStatus !== undefined) {
      await response.body?.cancel()
      // Once, because it may last: without its text and the URL, which can contain keys.
      if (loggedStatus !== gatewayStatus) logEvent('node refused by gateway', { node, status: gatewayStatus })
      loggedStatus = gatewayStatus
      throw new Error(`the status ${response.status}`)
    }
    if (response.status === REQUEST_TOO_LARGE) {
      await response.body?.cancel()
      return { error: { code: REQUEST_TOO_LARGE, message: 'the request is too large' } }
    }
    const text = await readText(response, signal, maxBytes)
    if (text !== undefined) return JSON.parse(text)
    if (maxBytes === MAX_RESPONSE_BYTES) throw new RangeError(`a response of more than ${maxBytes} bytes`)
    return { error: { code: RESULT_TOO_LARGE, message: 'the result is too large' } }
  }

  /** Sends one request. Throws when no valid response arrives before the signal is aborted. */
  async function send<Result>(request: RpcRequest<Result>, signal: AbortSignal): Promise<RpcResponse<Result>> {
    return exchange(
      envelope(request),
      signal,
      [request],
      reply => parseResponse(reply, request),
      response => [response],
    )
  }

  /** Sends several requests in one HTTP request, or one by one if the node accepts no batches. Throws like `send`. */
  async function sendBatch(requests: readonly RpcRequest[], signal: AbortSignal): Promise<RpcResponse[]> {
    if (!endpoint.acceptsBatches || requests.length <= 1) return sendOneByOne(requests, signal)
    return brokenBatches < MAX_BROKEN_BATCHES ? sendTogether(requests, signal) : sendSuspected(requests, signal)
  }

  async function sendTogether(requests: readonly RpcRequest[], signal: AbortSignal): Promise<RpcResponse[]> {
    const bodies = requests.map(envelope)
    let hasReplied = false
    const parse = (replies: unknown): RpcResponse[] | undefined => {
      hasReplied = true
      if (Array.isArray(replies) && replies.length === bodies.length) {
        const withoutId = replies.filter(reply => reply?.id === null).values() // an error may lack the id of its request
        const inOrder = bodies.map(({ id }) => replies.find(reply => reply?.id === id) ?? withoutId.next().value)
        if (!isOnly || inOrder.every(reply => reply !== undefined))
          return requests.map((request, index) => parseResponse(inOrder[index], request))
      }
      // Some nodes return the error of the whole batch as a list.
      const error = parseErrorOf(Array.isArray(replies) && replies.length === 1 ? replies[0] : replies)
      if (error && isBatchUnsupported(error)) return undefined
      if (error && (isLimit(error) || error.code === RESULT_TOO_LARGE)) return bodies.map(() => ({ error }))
      if (isOnly && !error) return undefined
      throw new TypeError('not the responses to a batch')
    }
    const responses = await exchange(bodies, signal, requests, parse, responses => responses).catch(error => {
      if (!signal.aborted && !hasReplied && !(error instanceof Throttled)) brokenBatches++
      throw error
    })
    brokenBatches = 0
    if (responses) return responses
    batchesPausedUntil = Date.now() + BATCH_PAUSE_MS
    return sendOneByOne(requests, signal)
  }

  /**
   * Sends one request alone and then the others, because the node has dropped batches. If it responds to that one, it
   * gets no batch for a while; otherwise batches are not the reason.
   */
  async function sendSuspected(requests: readonly RpcRequest[], signal: AbortSignal): Promise<RpcResponse[]> {
    brokenBatches = 0
    const first = await sendOneByOne(requests.slice(0, 1), signal)
    batchesPausedUntil = Date.now() + BATCH_PAUSE_MS
    return [...first, ...(await sendOneByOne(requests.slice(1), signal))]
  }

  async function sendOneByOne(requests: readonly RpcRequest[], signal: AbortSignal): Promise<RpcResponse[]> {
    const responses: RpcResponse[] = []
    for (const request of requests) responses.push(await send(request, signal))
    return responses
  }

  const endpoint = {
    /** Its name in metrics. */
    name: node,
    send,
    sendBatch,
    /** Epoch milliseconds until which the other nodes are preferred. */
    restUntil: 0,
    /** Epoch milliseconds until which the other nodes are preferred for requests with a state override. */
    noOverridesUntil: 0,
    /** Epoch milliseconds until which the node gets no requests, because it limits their rate. */
    get throttledUntil(): number {
      return throttledUntil
    },
    /** How often in a row the node failed. */
    failures: 0,
    /** The status with which a gateway refused the last request instead of the node; undefined if none did. */
    get gatewayStatus(): number | undefined {
      return gatewayStatus
    },
    /** Whether the node may accept several requests in one HTTP request. After a rejection it gets none for a while. */
    get acceptsBatches(): boolean {
      return Date.now() >= batchesPausedUntil
    },
    /** Whether the node may support eth_sendRawTransactionSync. */
    supportsSyncSend: true,
    /**
     * How many transactions the node gets in one batch, how many batches in a row were slow, and until when it gets
     * none (epoch milliseconds); see submit.ts.
     */
    sendBatches: { size: MIN_SEND_BATCH, slow: 0, pausedUntil: 0 },
  }
  return endpoint
}

/**
 * Returns whether a gateway or the provider's account refuses the request: the error in its body says nothing about a
 * call. With 400, 404 and 500 some nodes return the errors of their own.
 */
const isOfGateway = ({ status }: Response): boolean => [401, 402, 403].includes(status) || status > 500

/**
 * Returns the pause that a response names, in milliseconds; NaN if it names none. A date counts by the clock of the
 * server.
 */
function retryAfterMs(headers: Headers): number {
  const text = headers.get('retry-after') ?? ''
  const date = headers.get('date')
  return text.includes(':')
    ? Date.parse(text) - (date ? Date.parse(date) : Date.now())
    : Number(text || Number.NaN) * 1_000
}

/** Returns how large the response to some requests may be: as large as that to any of them. */
const maxBytesOf = (requests: readonly RpcRequest[]) =>
  Math.max(...requests.map(({ maxBytes = MAX_RESPONSE_BYTES }) => maxBytes))

/**
 * Reads a body. Returns undefined, and cancels the rest, if it exceeds the limit. Throws once the signal is aborted.
 */
async function readText(response: Response, signal: AbortSignal, maxBytes: number): Promise<string | undefined> {
  const { headers, body } = response
  const length = headers.get('content-length')
  if (Number(length) > maxBytes) {
    await body?.cancel()
    return undefined
  }
  // The runtime reads no more than the declared length, but that of a compressed body says little about its text.
  if (length !== null && !headers.has('content-encoding')) return response.text()
  const reader = body?.getReader()
  const cancel = () => void reader?.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  const decoder = new TextDecoder()
  let text = ''
  let size = 0
  try {
    for (;;) {
      const { value, done } = (await reader?.read()) ?? { done: true }
      signal.throwIfAborted()
      if (done) return text + decoder.decode()
      size += value.byteLength
      if (size > maxBytes) {
        cancel()
        return undefined
      }
      text += decoder.decode(value, { stream: true })
    }
  } catch (error) {
    cancel()
    throw error
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Parses a JSON-RPC response. Throws if its result is not of the type that the request expects. */
function parseResponse<Result>(reply: unknown, { method, isResult }: RpcRequest<Result>): RpcResponse<Result> {
  const error = parseErrorOf(reply)
  if (error) return { error }
  const { result } = reply as { result?: unknown }
  if (!isResult(result)) throw new TypeError(`a malformed result of ${method}`)
  return { result }
}

/** Returns the error of a JSON-RPC response, or undefined if it has none. Throws if it is not a response. */
function parseErrorOf(reply: unknown): RpcError | undefined {
  if (typeof reply !== 'object' || reply === null) throw new TypeError('not a JSON-RPC response')
  return 'error' in reply && typeof reply.error === 'object' && reply.error !== null
    ? parseError(reply.error)
    : undefined
}

function parseError({ code, message, data }: { code?: unknown; message?: unknown; data?: unknown }): RpcError {
  const revertData = findRevertData(data)
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? withoutReason(message.slice(0, MAX_MESSAGE_LENGTH)) : '',
    ...(revertData !== undefined && { data: revertData }),
  }
}

/** Returns the revert data of an error: some nodes put a word before it, or wrap it in objects. */
function findRevertData(data: unknown, depth = 0): Hex | undefined {
  if (typeof data === 'object' && data !== null && depth < MAX_WRAPPERS) {
    const wrapper = data as { data?: unknown; originalError?: unknown }
    return findRevertData(wrapper.data ?? wrapper.originalError, depth + 1)
  }
  const hex = typeof data === 'string' ? data.replace(/^reverted /i, '') : undefined
  return isRevertData(hex) ? hex : undefined
}

/** Returns a message without the reason of a revert: a contract chooses it, and must not speak for the node. */
const withoutReason = (message: string): string => message.replace(/(reverted|revert)\b.*/is, '$1')

/** Returns whether a value from a node is revert data of a length that can be stored. */
export const isRevertData = (data: unknown): data is Hex =>
  isHex(data) && data.length <= '0x'.length + 2 * MAX_REVERT_DATA_BYTES

/** One HTTP request to a node. `startedAt` is a time of `performance.now()`. */
type SentRequest = { node: string; methods: readonly string[]; startedAt: number }

/** Records a node's response; undefined for a batch that it refused as such, which counts once. */
function recordResponses(request: SentRequest, responses: readonly RpcResponse[] | undefined): void {
  const { node, methods } = request
  recordDuration(request)
  const error = responses?.[0]?.error
  const isRefused = methods.length > 1 && error !== undefined && responses?.every(response => response.error === error)
  if (responses === undefined || isRefused)
    count('ats_rpc_requests', { method: BATCH, node, result: resultOf(responses?.[0]) })
  else
    for (const [index, method] of methods.entries())
      count('ats_rpc_requests', { method, node, result: resultOf(responses[index]) })
}

/** Records that no valid response came. A request that was aborted because another node was faster is `canceled`. */
function recordFailure(request: SentRequest, { aborted, reason }: AbortSignal): void {
  recordDuration(request)
  const result = !aborted ? 'fault' : isTimeout(reason) ? 'timeout' : 'canceled'
  count('ats_rpc_requests', { method: methodOf(request), node: request.node, result })
}

function recordDuration({ node, startedAt, ...request }: SentRequest) {
  const seconds = (performance.now() - startedAt) / 1_000
  observe('ats_rpc_request_duration_seconds', { method: methodOf(request), node }, seconds)
}

/** The method of several requests at once, in metrics. */
const BATCH = 'batch'
const methodOf = ({ methods: [first = '', ...more] }: Pick<SentRequest, 'methods'>) => (more.length > 0 ? BATCH : first)

function resultOf(response: RpcResponse | undefined): string {
  if (response === undefined) return 'error'
  if (response.error === undefined) return 'ok'
  return isNodeFault(response.error) ? 'fault' : 'error'
}

/** A part of a host that is this long is more likely a key than a name. */
const KEY = /[a-z0-9_-]{24,}/gi

/**
 * Returns the names of nodes in metrics: the host and port of each URL, without credentials, path and query. A further
 * node on the same host gets its position appended.
 */
export function nodeNames(urls: readonly string[]): string[] {
  const hosts = urls.map(url => (URL.parse(url)?.host ?? 'invalid').replaceAll(KEY, '*'))
  return hosts.map((host, index) => (hosts.indexOf(host) === index ? host : `${host} ${index + 1}`))
}
