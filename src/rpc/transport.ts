import { abortAfter, isTimeout, sleep, type withDeadline } from '../concurrency.ts'
import { count } from '../metrics/recorder.ts'
import { createEndpoint, type Endpoint, nodeNames, type RpcResponse } from './endpoint-client.ts'
import { hedge } from './hedge.ts'
import {
  BehindNode,
  EmptyResult,
  isBlockLost,
  isBlockPruned,
  isLimit,
  isNodeFault,
  RESULT_TOO_LARGE,
  RefusedByNode,
  type RpcError,
  Throttled,
  unreachable,
} from './node-errors.ts'
import { createNodeHeads } from './node-heads.ts'
import { blockRequest, chainIdRequest, type RpcRequest, readsNewest, toHeader } from './requests.ts'

/**
 * In how many rounds a request is sent, at most, all within the timeout of the transport. Each round queries the nodes
 * in order: the next one after a failure, or after HEDGE_MS of silence. A node gets a request twice in a round if its
 * connection broke: a kept-alive connection may close just as it is reused. A node that is the only one is sent up to
 * `ONLY_NODE_SENDS`: it gets a request again after its pause if it limits the rate, and three times after its
 * connection broke, because nothing can take its place. docs/architecture.md has the worst cases.
 *
 * All have more rounds while the nodes are behind, or lack the block to read: CATCH_UP_PAUSES_MS. Besides:
 *
 * - `read` has a second round, if the fault of a node ended the first one.
 * - `call` has one, because errors are responses to it.
 * - `batch` has one, because its callers repeat it with their next step. A node that takes no batches gets the requests
 *   one by one.
 * - `submit` and `submitBatch` send once, to one node: the lane decides when to resend, and to which.
 *
 * A call that shares a batch (`createRequestBatcher`) and finds no usable response there is sent as a `call` after
 * that.
 */
export const ROUNDS = { read: 2, call: 1, batch: 1 } as const
const SENDS = 2
const ONLY_NODE_SENDS = 10
/** The pauses before a node gets a request again whose response was none, if it is the only one, and otherwise. */
const BROKEN_PAUSES_MS = { onlyNode: [0, 100, 300], others: [0] } as const
/** How long a node may be silent before the next one is queried too. */
const HEDGE_MS = 500
const ROUND_PAUSE_MS = 100
/** How long a node that serves the right chain is not asked again, where there are several. */
const CHAIN_CHECK_MS = 600_000
/** How long a node that rejects or ignores a state override is the last choice for requests with one. */
const NO_OVERRIDES_MS = 600_000
/**
 * The pauses before the nodes are queried again while all are behind: until then most have another block. Providers
 * bill each query.
 */
const CATCH_UP_PAUSES_MS = [50, 50, 100, 200, 300, 400, 500, 500, 500]

/** The responses to a list of requests, in the same order; undefined for an undefined request. */
type RpcResponses<Requests extends readonly (RpcRequest | undefined)[]> = {
  [index in keyof Requests]: ResponseTo<Requests[index]>
}
type ResponseTo<Request> = Request extends RpcRequest<infer Result> ? RpcResponse<Result> : undefined

type Answered<Value> = { kind: 'answered'; value: Value }
/**
 * Why a node's response is of no use. A node that `failed` is the last choice for a while; one that is `behind`
 * catches up; a request that it `refused` meets the same refusal again.
 */
type FailedAttempt = {
  kind: 'failed' | 'behind' | 'refused'
  cause?: RefusedByNode | EmptyResult | BehindNode
}
type Attempt<Value> = Answered<Value> | FailedAttempt

export type RpcTransport = ReturnType<typeof createTransport>

/** Less than the time limit of our endpoints, so that a request can time out and still be refused in time. */
const DEFAULT_TIMEOUT_MS = 4_000
const MIN_REST_MS = 2_000
const MAX_REST_MS = 30_000

/**
 * Creates the transport of JSON-RPC over one or more nodes of a chain, in order of preference. Requests to a slow node
 * are hedged: the next node is queried too, and the first response counts. Errors contain neither URLs nor messages of
 * nodes. `timeoutMs` bounds a read, a call or a batch as a whole: all
 * nodes and retries, headers and bodies. `within` replaces `withDeadline`, as in `abortAfter`. Of several nodes, one
 * that serves another chain than `chainId` gets no requests. On a chain that `makesBlocksOnDemand`, an old head is
 * normal.
 */
export function createTransport(
  urls: readonly string[],
  {
    timeoutMs = DEFAULT_TIMEOUT_MS,
    within,
    isBackground = false,
    chainId,
    makesBlocksOnDemand = false,
  }: {
    timeoutMs?: number | undefined
    within?: typeof withDeadline
    isBackground?: boolean
    chainId?: number
    makesBlocksOnDemand?: boolean
  } = {},
) {
  const names = nodeNames(urls)
  const endpoints = urls.map((url, index) =>
    createEndpoint(url, names[index] ?? '', { isBackground, isOnly: urls.length === 1 }),
  )
  /** Whether a request waits for a node that limits the rate or fails for a moment: there is no other one. */
  const waits = endpoints.length === 1 && !isBackground
  /** Whether each node serves another chain, and until when that counts if it does not. */
  const chainChecks = new Map<Endpoint, { isOther: boolean; until: number }>()

  /**
   * Throws if a node serves another chain. It is then the last choice, and asked again each time: it may have named the
   * chain wrong once. A single node is not asked here: nothing could take its place, and each reader checks its chain.
   */
  async function assertChain(endpoint: Endpoint, signal: AbortSignal): Promise<void> {
    if (chainId === undefined || endpoints.length < 2) return
    const known = chainChecks.get(endpoint)
    if (known === undefined || known.isOther || Date.now() >= known.until) {
      const { result } = await endpoint.send(chainIdRequest, signal)
      if (result === undefined) return
      chainChecks.set(endpoint, { isOther: Number(result) !== chainId, until: Date.now() + CHAIN_CHECK_MS })
    }
    if (chainChecks.get(endpoint)?.isOther) throw new Error('the node serves another chain')
  }

  function inOrder({ hasOverride }: Partial<RpcRequest> = {}): Endpoint[] {
    const now = Date.now()
    const restOf = ({ restUntil, noOverridesUntil, throttledUntil }: Endpoint) =>
      Math.max(restUntil - now, throttledUntil - now, hasOverride ? noOverridesUntil - now : 0, 0)
    const isOther = (endpoint: Endpoint) => Number(chainChecks.get(endpoint)?.isOther ?? false)
    const isBehind = (endpoint: Endpoint) => Number(heads.isBehind(endpoint))
    return endpoints.toSorted((a, b) => isOther(a) - isOther(b) || isBehind(a) - isBehind(b) || restOf(a) - restOf(b))
  }

  /**
   * Makes a failed node the last choice for two seconds, and longer after each further failure in a row. Has no effect
   * on a node that rests already.
   */
  function rest(endpoint: Endpoint): void {
    const now = Date.now()
    // Requests that fail together are one failure.
    if (now < endpoint.restUntil) return
    endpoint.restUntil = now + Math.min(MIN_REST_MS * 2 ** endpoint.failures++, MAX_REST_MS)
  }

  const heads = createNodeHeads(endpoints, {
    askHead: endpoint =>
      abortAfter(
        HEDGE_MS,
        async ({ signal }) => {
          await assertChain(endpoint, signal)
          return toHeader((await endpoint.send(blockRequest('latest'), signal)).result)
        },
        within,
      ).catch(() => void rest(endpoint)),
    makesBlocksOnDemand,
    mayAsk: ({ throttledUntil }) => throttledUntil <= Date.now(),
    isResting: ({ restUntil }) => restUntil > Date.now(),
  })

  /** Whether the responses of a node may be used, or it is behind. */
  function isUsable(endpoint: Endpoint, requests: readonly RpcRequest[], responses: readonly RpcResponse[]) {
    const shown = requests.map(({ headOf }, index) => {
      const result = responses[index]?.result
      return result === undefined ? undefined : headOf?.(result)
    })
    return heads.isUsable(endpoint, {
      head: shown.find(head => head !== undefined),
      isAbsent: responses.some(({ result, error }) => result === null || (error && isBlockLost(error))),
      isNewest: requests.some(readsNewest),
    })
  }

  /**
   * Queries the nodes until one returns a value, and ends the other queries. One that throws or is too slow has failed.
   * Without a value, returns the attempt that says most about whether to try again.
   */
  async function queryNodes<Value>(
    controller: AbortController,
    query: (endpoint: Endpoint) => Promise<Attempt<Value>>,
    request?: RpcRequest,
  ): Promise<Attempt<Value>> {
    const { signal } = controller
    const failures: FailedAttempt[] = []
    const attempt = async (endpoint: Endpoint): Promise<Answered<Value> | undefined> => {
      const result = await assertChain(endpoint, signal)
        .then(() => query(endpoint))
        .catch((): FailedAttempt => ({ kind: 'failed' }))
      if (result.kind === 'answered') {
        endpoint.failures = 0
        return result
      }
      failures.push(result)
      if (result.kind === 'failed' && (!signal.aborted || isTimeout(signal.reason))) rest(endpoint)
      return undefined
    }
    const [answered] = await Promise.all([
      hedge(inOrder(request), attempt, { waitMs: HEDGE_MS, controller, onSlow: rest }),
      heads.isRecheckDue() && heads.compare(),
    ])
    return (
      answered ??
      failures.findLast(({ kind }) => kind === 'behind') ??
      failures.findLast(({ kind }) => kind === 'refused') ??
      failures.at(-1) ?? { kind: 'failed' }
    )
  }

  /** Queries the nodes in at most this many rounds, and in more while they are behind. Throws CHAIN_UNREACHABLE. */
  async function query<Value>(
    name: string,
    rounds: number,
    attempt: (endpoint: Endpoint, signal: AbortSignal) => Promise<Attempt<Value>>,
    request?: RpcRequest,
  ): Promise<Value> {
    const results: Attempt<Value>[] = []
    const catchUpPauses = CATCH_UP_PAUSES_MS.values()
    const pauseAfter = ({ kind }: FailedAttempt): number | undefined => {
      switch (kind) {
        case 'behind':
          return catchUpPauses.next().value
        case 'failed':
          return results.filter(({ kind }) => kind === 'failed').length < rounds ? ROUND_PAUSE_MS : undefined
        case 'refused':
          return undefined
      }
    }
    const inTime = async (controller: AbortController): Promise<void> => {
      for (;;) {
        const result = await queryNodes(controller, endpoint => attempt(endpoint, controller.signal), request)
        results.push(result)
        if (result.kind === 'answered' || controller.signal.aborted) return
        const pause = pauseAfter(result)
        if (pause === undefined) return
        await sleep(pause)
      }
    }
    await abortAfter(timeoutMs, inTime, within).catch(() => {}) // it took too long
    const last = results.at(-1)
    if (last?.kind === 'answered') return last.value
    throw unreachable(last?.cause ?? `no node answered ${name}`)
  }

  /**
   * Returns the result of a request that succeeds on every healthy node: any error makes it query the next node. A node
   * whose result `isCurrent` rejects is behind: the others are queried, and all of them again while they catch up.
   * Throws CHAIN_UNREACHABLE when no node returns a result; the cause is RefusedByNode if the last one returned an
   * error, EmptyResult if it returned no data to a request that needs some, and BehindNode if it is behind.
   */
  function read<Result>(
    request: RpcRequest<Result>,
    isCurrent: (result: Result) => boolean = () => true,
  ): Promise<Result> {
    const { method, returnsData, hasOverride } = request
    const refuseOverrides = (endpoint: Endpoint) => {
      if (hasOverride) endpoint.noOverridesUntil = Date.now() + NO_OVERRIDES_MS
    }
    const attempt = async (endpoint: Endpoint, signal: AbortSignal): Promise<Attempt<Result>> => {
      const { result, error } = await sendRequest(endpoint, request, { waits }, signal)
      if (error === undefined) {
        if (returnsData && (result as unknown) === '0x') {
          refuseOverrides(endpoint)
          count('ats_rpc_refused_reads', { node: endpoint.name, method })
          return { kind: 'failed', cause: new EmptyResult(method) }
        }
        const isUsed = isCurrent(result) && (await isUsable(endpoint, [request], [{ result }]))
        return isUsed ? { kind: 'answered', value: result } : { kind: 'behind', cause: new BehindNode(method) }
      }
      const fault = faultIn(error, request)
      if (fault) return fault
      // A stranger may cause these: the operator has nothing to repair.
      if (error.code !== RESULT_TOO_LARGE) count('ats_rpc_refused_reads', { node: endpoint.name, method })
      refuseOverrides(endpoint)
      return { kind: 'refused', cause: new RefusedByNode(method, error.code) }
    }
    return query(method, ROUNDS.read, attempt, request)
  }

  /**
   * Returns the first response that does not report a fault of the node: an error is returned as a value, for callers
   * that interpret it, such as a revert. Throws CHAIN_UNREACHABLE when every node fails.
   */
  function call<Result>(request: RpcRequest<Result>): Promise<RpcResponse<Result>> {
    const { method } = request
    return query(method, ROUNDS.call, async (endpoint, signal) => {
      const response = await sendRequest(endpoint, request, { waits }, signal)
      const fault = response.error && faultIn(response.error, request)
      if (fault) return fault
      if (!(await isUsable(endpoint, [request], [response]))) return { kind: 'behind', cause: new BehindNode(method) }
      return { kind: 'answered', value: response }
    })
  }

  /**
   * Returns the responses of one node to all requests, in order; errors are values. A node whose responses `accept`
   * rejects counts as failed. Throws CHAIN_UNREACHABLE when every node fails.
   */
  function batch<const Requests extends readonly (RpcRequest | undefined)[]>(
    requests: Requests,
    accept: (responses: RpcResponses<Requests>) => boolean = () => true,
  ): Promise<RpcResponses<Requests>> {
    const sent = requests.filter(request => request !== undefined)
    return query('a batch', ROUNDS.batch, async (endpoint, signal) => {
      const received = await sendAgain({ waits }, signal, () => endpoint.sendBatch(sent, signal))
      const responses = inPlaceOf(requests, received)
      if (!accept(responses)) return { kind: 'failed' }
      if (!(await isUsable(endpoint, sent, received))) return { kind: 'behind', cause: new BehindNode('a batch') }
      return { kind: 'answered', value: responses }
    })
  }

  return {
    read,
    call,
    batch,
    /** `abortAfter` with the timers of this transport. */
    abortAfter: <Value>(timeoutMs: number, work: (controller: AbortController) => Promise<Value>): Promise<Value> =>
      abortAfter(timeoutMs, work, within),
    /** How many nodes there are. */
    nodes: endpoints.length,
    /** All nodes, in the order of the configuration. */
    endpoints: endpoints as readonly Endpoint[],
    /** How far the nodes are. */
    heads,
    /** Returns the node to query next, or the one `turn` places after it, wrapping around; undefined without nodes. */
    preferred(turn = 0): Endpoint | undefined {
      const usable = inOrder().filter(endpoint => !chainChecks.get(endpoint)?.isOther)
      return usable[turn % usable.length]
    },
    rest,
  }
}

/** Returns the responses at the positions of their requests. */
function inPlaceOf<Requests extends readonly (RpcRequest | undefined)[]>(
  requests: Requests,
  received: readonly RpcResponse[],
): RpcResponses<Requests> {
  const rest = received.values()
  const responses: unknown = requests.map(request => request && rest.next().value)
  return responses as RpcResponses<Requests>
}

/** Returns what an error says about the node; undefined if it is about the request. */
function faultIn(error: RpcError, request: RpcRequest): FailedAttempt | undefined {
  if (!isNodeFault(error)) return undefined
  return {
    kind: mayGetBlock(error, request) ? 'behind' : 'failed',
    cause: new RefusedByNode(request.method, error.code),
  }
}

/**
 * Whether a node lacks the block of a request for the moment. anvil with `--prune-history` resolves `latest` to a
 * number first, and a block mined at that moment removes that number's state.
 */
const mayGetBlock = (error: RpcError, request: RpcRequest): boolean =>
  isBlockLost(error) && !request.params.includes('pending') && (readsLatest(request) || !isBlockPruned(error))

function sendRequest<Result>(
  endpoint: Endpoint,
  request: RpcRequest<Result>,
  { waits }: { waits: boolean },
  signal: AbortSignal,
): Promise<RpcResponse<Result>> {
  const isForMoment = ({ error }: RpcResponse) =>
    waits && error !== undefined && isLimit(error) && !isLimitFinal(request)
  return sendAgain({ waits }, signal, () => endpoint.send(request, signal), isForMoment)
}

/**
 * Sends to one node until it responds: again after a broken connection, and if the request `waits`, after the pause of
 * a node that limits the rate, and a few times while it has a fault for the moment.
 */
async function sendAgain<Response>(
  { waits }: { waits: boolean },
  signal: AbortSignal,
  send: () => Promise<Response>,
  isForMoment: (response: Response) => boolean = () => false,
): Promise<Response> {
  const maxSends = waits ? ONLY_NODE_SENDS : SENDS
  const pauses = BROKEN_PAUSES_MS[waits ? 'onlyNode' : 'others'].values()
  for (let sent = 1; ; sent++) {
    let pause: number | undefined
    try {
      const response = await send()
      if (sent < maxSends && isForMoment(response)) pause = pauses.next().value
      if (pause === undefined) return response
    } catch (error) {
      signal.throwIfAborted()
      if (sent >= maxSends) throw error
      if (error instanceof Throttled) {
        if (!waits) throw error
        continue
      }
      pause = pauses.next().value
      if (pause === undefined) throw error
    }
    if (pause > 0) await sleep(pause)
  }
}

/**
 * Whether a repeated request meets the same limit: a range of logs stays too large, and a pending block stays missing.
 */
const isLimitFinal = ({ isSplit, params }: RpcRequest) => isSplit || params.includes('pending')

/** A method with a single parameter, such as eth_estimateGas, reads the newest block. */
const readsLatest = ({ params }: RpcRequest) => params.includes('latest') || params.length === 1
