import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import { type Abi, type Address, type ContractFunctionName, type Hex, parseAbi } from 'viem'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { ageSeconds, MAX_REPORT_LEAD_SECONDS, nowAt } from '../clock.ts'
import { RefusedByNode, unreachable } from '../rpc/node-errors.ts'
import { readRequest, type StateOverride } from '../rpc/requests.ts'
import { NO_PRICES, toPriceSource } from './carried-prices.ts'
import type { Block, Chain } from './configured-chain.ts'
import {
  type ArgsOf,
  CallFailed,
  type CallResult,
  decodeBatch,
  decodeResult,
  encodeBatch,
  encodeCall,
  hasFailed,
  type ReturnOf,
} from './encode-and-decode-call.ts'
import { readCurrent } from './read-current.ts'

const CALL = Symbol('contract call')

/** One call in a tree; its value takes the place of the call. */
export type ContractCall<Value> = {
  readonly [CALL]: true
  address: Address
  data: Hex
  hasFailed: (result: CallResult) => boolean
  decode: (result: CallResult) => Value
  /** Whether an issuer decides what the contract does: see `untrusted`. */
  isUntrusted?: true
}

/** Calls and constants in arrays and objects of any depth. Constants are returned unchanged. */
type CallTree =
  | ContractCall<unknown>
  | string
  | number
  | bigint
  | boolean
  | undefined
  | readonly CallTree[]
  | { readonly [name: string]: CallTree }

/** A tree with the values of its calls in their places. */
export type ValuesOf<Tree> =
  Tree extends ContractCall<infer Value>
    ? Value
    : Tree extends object
      ? { [name in keyof Tree]: ValuesOf<Tree[name]> }
      : Tree

/** The contract that makes the calls, and what it finds in place of the state. */
type Simulation = { from: Address; override: StateOverride }

/** The values of a tree, the block they are of, and the carried prices that the oracle did not refuse. */
type TreeReading<Tree> = { block: Block; values: ValuesOf<Tree>; carried: CarriedPrices | undefined }

/** A call that must succeed: `readTree` throws CallFailed if it reverts. */
export const call = <const abi extends Abi, name extends ContractFunctionName<abi>>(
  { address, abi }: { address: Address; abi: abi },
  functionName: name,
  args: ArgsOf<abi, name>,
): ContractCall<ReturnOf<abi, name>> => {
  let last: { data: Hex; value: ReturnOf<abi, name> } | undefined
  return {
    [CALL]: true,
    address,
    data: encodeCall(abi, functionName, args),
    hasFailed: result => hasFailed(abi, functionName, result),
    // Most of what a tree reads again is as it was.
    decode(result) {
      if (!result.success || result.data !== last?.data)
        last = { data: result.data, value: decodeResult(abi, functionName, result) }
      return last.value
    },
  }
}

/** A call that may fail: its value is undefined if it reverts. */
export const optional = <Value>(required: ContractCall<Value>): ContractCall<Value | undefined> => ({
  ...required,
  decode: result => decodeAttempt(required, result).value,
})

/**
 * A call of a token, whose issuer may have upgraded it to code that takes all gas or returns megabytes. `readTree`
 * then does without it, so that the rest can be read.
 */
export const untrusted = <Value>(call: ContractCall<Value | undefined>): ContractCall<Value | undefined> => ({
  ...call,
  isUntrusted: true,
})

/** How long calls of a hostile contract are left out before they are tried again. */
const HOSTILE_MS = 60_000
/** A contract that takes all gas leaves a 64th of it, which is enough for a few more calls, but not three times. */
const PROBES = 3

/** The value of a call, or the data with which it reverted. */
type CallAttempt<Value> = { value: Value; revertData?: undefined } | { value?: undefined; revertData: Hex }

/** A call that may fail, with its revert data. */
export const attempt = <Value>(required: ContractCall<Value>): ContractCall<CallAttempt<Value>> => ({
  ...required,
  decode: result => decodeAttempt(required, result),
})

function decodeAttempt<Value>(call: ContractCall<Value>, result: CallResult): CallAttempt<Value> {
  if (call.hasFailed(result)) return { revertData: result.data }
  try {
    return { value: call.decode(result) }
  } catch (error) {
    if (error instanceof CallFailed) return { revertData: error.data }
    throw error
  }
}

const blockAbi = parseAbi([
  'function getBlockNumber() view returns (uint256)',
  'function getCurrentBlockTimestamp() view returns (uint256)',
  'function getChainId() view returns (uint256)',
  'function arbBlockNumber() view returns (uint256)',
])
/** On Arbitrum `block.number` is the parent chain's; this precompile knows the chain's own. Other chains lack it. */
const ARB_SYS = '0x0000000000000000000000000000000000000064'

/**
 * Reads all calls of a tree in one `eth_call` through Multicall3, so all values are of one block, which is returned
 * with them. It reads the newest block, or the block `at`: a node that shows another one instead is passed over. A
 * `simulation` runs the calls in the order of the tree, on an overridden state and from another contract with
 * `aggregate3`: later calls see what earlier ones changed. Prices that the chain carries come first. Throws
 * CHAIN_UNREACHABLE, also when the node is on another chain, NODES_BEHIND, and CallFailed when a call that must succeed
 * reverts.
 *
 *     const { block, values } = await readTree(chain, {
 *       tokenCount: call(registry, 'tokenCount', []),
 *       tokens: tokens.map(token => ({ token, round: optional(call(oracle, 'latestRoundData', [token])) })),
 *     })
 */
export async function readTree<const Tree extends CallTree>(
  chain: Chain,
  tree: Tree,
  at?: Block,
  simulation?: Simulation,
): Promise<TreeReading<Tree>> {
  const reading = await readTreeAt(chain, tree, { at, simulation })
  const hasAllReports = reading.carried?.reports.length === chain.carried?.reports.length
  if (at || hasAllReports || ageSeconds(reading.block) <= MAX_REPORT_LEAD_SECONDS) return reading
  // Reports of now are from the future of an old block: the next transaction finds another time.
  const time = nowAt(reading.block)
  const next = await readTreeAt(chain, tree, { simulation, time }).catch(() => undefined)
  if (next === undefined) return reading
  // A newer block needs no other time.
  return next.block.number === reading.block.number
    ? { ...next, block: reading.block }
    : readTreeAt(chain, tree, { simulation })
}

async function readTreeAt<const Tree extends CallTree>(
  chain: Chain,
  tree: Tree,
  { at, simulation, time }: { at?: Block | undefined; simulation?: Simulation | undefined; time?: bigint | undefined },
): Promise<TreeReading<Tree>> {
  const { contracts } = chain
  const multicall = { address: contracts.Multicall3, abi: blockAbi }
  const head = {
    number: call(multicall, 'getBlockNumber', []),
    timestamp: call(multicall, 'getCurrentBlockTimestamp', []),
    chainId: call(multicall, 'getChainId', []),
    arbitrumNumber: optional(call({ address: ARB_SYS, abi: blockAbi }, 'arbBlockNumber', [])),
  }
  const prices = carriedCalls(chain)
  const sources = at ? [] : sourceCalls(chain)
  const calls = [prices, head, tree, sources].flatMap(callsOf)
  const isKept = ({ address, isUntrusted }: ContractCall<unknown>) =>
    !isUntrusted || (chain.memory.hostileContracts.get(address) ?? 0) <= Date.now()
  const kept = calls.filter(isKept)
  const { from: to = contracts.Multicall3, override } = simulation ?? {}
  const request = readRequest({ to, data: encodeBatch(kept) }, { block: at?.number, override, time })
  const reading = readCurrent(at ? { ...chain, minBlock: undefined } : chain, request, returned => {
    const returnedResults = parseResults(returned, kept.length).values()
    const results = calls.map(each => (isKept(each) ? returnedResults.next().value : FAILED) ?? FAILED).values()
    const { reports, feeds } = fillIn(prices, results) as ValuesOf<typeof prices>
    const carried = chain.carried && { reports: takenOf(reports), feeds: takenOf(feeds) }
    const { number, timestamp, chainId, arbitrumNumber } = fillIn(head, results) as ValuesOf<typeof head>
    if (Number(chainId) !== chain.id) throw unreachable(`the node is on chain ${chainId}`)
    const block: Block = { number: arbitrumNumber ?? number, timestamp }
    if (at && block.number !== at.number) throw unreachable(`the node shows block ${block.number}`)
    const reading: unknown = { block, values: fillIn(tree, results), carried }
    remember(chain, fillIn(sources, results) as ValuesOf<typeof sources>)
    return reading as TreeReading<Tree>
  })
  return reading.catch(async (error: unknown) => {
    if (!isRefused(error) || !(await findHostileContracts(chain, kept))) throw error
    return readTreeAt(chain, tree, { at, simulation, time })
  })
}

/** How long the sources of prices are taken for the present ones. The next read after that reads them too. */
const SOURCES_MS = 15_000

const oracleOf = ({ contracts }: Chain) => ({ address: contracts.PriceOracle, abi: priceOracleAbi })

/**
 * The calls that bring prices along, each by itself: what the oracle refuses of one token, the reads do without, and
 * have the prices of all others.
 */
function carriedCalls(chain: Chain) {
  const { reports, feeds } = chain.carried ?? NO_PRICES
  const oracle = oracleOf(chain)
  return {
    reports: reports.map(price => ({ price, result: attempt(call(oracle, 'postReports', [[price]])) })),
    feeds: feeds.map(price => ({ price, result: attempt(call(oracle, 'syncFeeds', [[price]])) })),
  }
}

const takenOf = (prices: readonly { price: Hex; result: CallAttempt<unknown> }[]): Hex[] =>
  prices.flatMap(({ price, result }) => (result.revertData === undefined ? [price] : []))

/** The calls that read where prices come from, when it is time: they cost no request of their own. */
function sourceCalls(chain: Chain) {
  const { memory, tokens } = chain
  if (Date.now() - memory.priceSources.readAt < SOURCES_MS) return []
  return (memory.registryEntries?.tokens ?? Object.values(tokens)).map(token => ({
    token,
    source: optional(call(oracleOf(chain), 'sourceOf', [token])),
  }))
}

function remember({ memory }: Chain, sources: ValuesOf<ReturnType<typeof sourceCalls>>) {
  if (sources.length === 0) return
  const byToken = new Map(sources.map(({ token, source }) => [token, toPriceSource(source)]))
  memory.priceSources = { readAt: Date.now(), byToken }
}

const FAILED: CallResult = { success: false, data: '0x' }

const isRefused = (error: unknown): boolean => error instanceof Error && error.cause instanceof RefusedByNode

/** Remembers the untrusted contracts that a node cannot call, and returns whether there are any. */
async function findHostileContracts(chain: Chain, calls: readonly ContractCall<unknown>[]): Promise<boolean> {
  const suspects = new Map<Address, CallTree[]>()
  for (const { isUntrusted, ...each } of calls)
    if (isUntrusted)
      suspects.set(each.address, [...(suspects.get(each.address) ?? []), ...Array<CallTree>(PROBES).fill(each)])
  const found = await Promise.all(
    [...suspects].map(([address, probes]) =>
      readTree(chain, probes).then(
        () => false,
        (error: unknown) => {
          if (isRefused(error)) chain.memory.hostileContracts.set(address, Date.now() + HOSTILE_MS)
          return isRefused(error)
        },
      ),
    ),
  )
  return found.includes(true)
}

function parseResults(returned: Hex, count: number): CallResult[] {
  let results: CallResult[]
  try {
    results = decodeBatch(returned)
  } catch {
    throw unreachable('the node did not return the results of aggregate3')
  }
  if (results.length !== count) throw unreachable('the node returned the results of other calls')
  return results
}

const isCall = (tree: CallTree): tree is ContractCall<unknown> => typeof tree === 'object' && Object.hasOwn(tree, CALL)

/** Returns the calls of a tree in the order in which `fillIn` visits them. */
function callsOf(tree: CallTree): ContractCall<unknown>[] {
  if (isCall(tree)) return [tree]
  return typeof tree === 'object' ? Object.values(tree).flatMap(callsOf) : []
}

/** Returns the tree with decoded results in the places of its calls: `ValuesOf` describes its type. */
function fillIn(tree: CallTree, results: Iterator<CallResult>): unknown {
  if (isCall(tree)) return tree.decode(results.next().value)
  if (Array.isArray(tree)) return tree.map(part => fillIn(part, results))
  if (typeof tree !== 'object') return tree
  return Object.fromEntries(Object.entries(tree).map(([name, part]) => [name, fillIn(part, results)]))
}
