import { type Address, type Hash, type Hex, hexToNumber, numberToHex } from 'viem'
import {
  isAddress,
  isAnything,
  isCount,
  isData,
  isHash,
  isQuantity,
  listOf,
  nullOr,
  objectOf,
  optional,
  type ResultCheck,
  type ResultOf,
} from './json-type-guards.ts'

/** A JSON-RPC request. A node whose result fails `isResult` counts as failed. */
export type RpcRequest<Result = unknown> = {
  method: string
  params: readonly unknown[]
  isResult: ResultCheck<Result>
  /** Whether a node that returns `0x` has failed: no healthy one does. */
  returnsData?: true
  /** Whether it adds code to the state, which not every node allows. */
  hasOverride?: true
  /** Whether its callers split it if the node rejects its size, which looks like any other limit. */
  isSplit?: true
  /**
   * The most bytes of a response that are read, where a stranger decides how many there are. A longer one is
   * RESULT_TOO_LARGE.
   */
  maxBytes?: number
  /** Returns the newest block of the node, as a result shows it; only of requests for the newest state. */
  headOf?(result: Result): Head | undefined
}

/** The newest block that a node shows. The timestamp is in Unix seconds. */
export type Head = { number: number; timestamp: number }

/** Several times what the code of a contract, the receipt of a batch or the revert data that is kept has. */
const MAX_BYTES_OF_STRANGERS = 1024 * 1024

/** Bounds a request whose response a stranger's contract or transaction may make as long as gas allows. */
export const aboutStrangers = <Result>(request: RpcRequest<Result>): RpcRequest<Result> => ({
  ...request,
  maxBytes: MAX_BYTES_OF_STRANGERS,
})

/** A transaction to execute without sending it. Quantities are hex. */
type CallParameters = {
  from?: Address
  to?: Address
  data: Hex
  gas?: Hex
  maxFeePerGas?: Hex
  maxPriorityFeePerGas?: Hex
}

/** Selects logs by contract and by topic: in each position one topic, any of a list, or anything (null). */
export type LogFilter = {
  address: Address | readonly Address[]
  topics: readonly (Hex | readonly Hex[] | null)[]
}

/**
 * A block header. `baseFeePerGas` is absent before EIP-1559; only Arbitrum chains have `l1BlockNumber`, in a form that
 * depends on the node.
 */
export type NodeBlock = ResultOf<typeof isBlock>
const isBlock = objectOf({
  number: isCount,
  hash: isHash,
  timestamp: isCount,
  baseFeePerGas: optional(nullOr(isQuantity)),
  l1BlockNumber: isAnything,
})

/** A block header with its place on the chain and the filter of its logs, which some nodes omit. */
export type NodeHeader = NodeBlock & ResultOf<typeof hasHeaderFields>
const hasHeaderFields = objectOf({ parentHash: isHash, logsBloom: optional(nullOr(isData)) })

export type NodeTransaction = ResultOf<typeof isTransaction>
const isTransaction = objectOf({
  hash: isHash,
  from: isAddress,
  to: nullOr(isAddress),
  input: isData,
  blockNumber: nullOr(isCount),
})

/** A block with its transactions. */
type BlockTransactions = ResultOf<typeof hasTransactions>
const hasTransactions = objectOf({
  transactions: listOf(objectOf({ hash: isHash, from: isAddress, to: nullOr(isAddress), nonce: isCount })),
})

/** A log. Some nodes omit the time of its block. */
export type NodeLog = ResultOf<typeof isLog>
const isLog = objectOf({
  address: isAddress,
  topics: listOf(isHash),
  data: isData,
  blockNumber: isCount,
  blockHash: isHash,
  transactionHash: isHash,
  logIndex: isCount,
  blockTimestamp: optional(nullOr(isCount)),
})

/** A receipt. */
export type NodeReceipt = ResultOf<typeof hasReceiptFields>
const hasReceiptFields = objectOf({
  transactionHash: isHash,
  from: isAddress,
  to: nullOr(isAddress),
  blockNumber: isCount,
  /** Zero when a sequencer returns the receipt before it has sealed the block. */
  blockHash: nullOr(isHash),
  status: isCount,
  gasUsed: isCount,
  /** The part of `gasUsed` for data on L1, on Arbitrum chains; its form depends on the node. */
  gasUsedForL1: isAnything,
  effectiveGasPrice: optional(nullOr(isQuantity)),
  logs: listOf(isLog),
})

/** The result of geth's default tracer, without its steps. `returnValue` may lack the 0x prefix. */
type NodeTrace = ResultOf<typeof isTrace>
const isTrace = objectOf({
  failed: optional((value): value is boolean => typeof value === 'boolean'),
  returnValue: optional((value): value is string => typeof value === 'string'),
})

const isReceipt: ResultCheck<NodeReceipt> = (value): value is NodeReceipt =>
  hasReceiptFields(value) && value.logs.every(log => isSame(log.transactionHash, value.transactionHash))

/** A node that mixes up the responses of a batch returns the receipt of another transaction. It counts as failed. */
const isReceiptOf =
  (hash: Hex): ResultCheck<NodeReceipt> =>
  (value): value is NodeReceipt =>
    isReceipt(value) && isSame(value.transactionHash, hash)

const isSame = (one: Hex, other: Hex) => one.toLowerCase() === other.toLowerCase()

/** A signed transaction and its hash. */
export type SignedBytes = { raw: Hex; hash: Hex }

const isHashOf =
  ({ hash }: SignedBytes): ResultCheck<Hash> =>
  (value): value is Hash =>
    isHash(value) && isSame(value, hash)

type BlockTag = number | bigint | 'latest' | 'pending' | 'finalized'

export const chainIdRequest: RpcRequest<Hex> = { method: 'eth_chainId', params: [], isResult: isCount }
export const blockNumberRequest: RpcRequest<Hex> = { method: 'eth_blockNumber', params: [], isResult: isCount }
export const priorityFeeRequest: RpcRequest<Hex> = {
  method: 'eth_maxPriorityFeePerGas',
  params: [],
  isResult: isQuantity,
}

export const blockRequest = (block: BlockTag): RpcRequest<NodeBlock | null> => ({
  method: 'eth_getBlockByNumber',
  params: [toTag(block), false],
  isResult: nullOr(
    typeof block === 'string'
      ? isBlock
      : (value): value is NodeBlock => isBlock(value) && BigInt(value.number) === BigInt(block),
  ),
  ...(block === 'latest' && { headOf: toHeader }),
})

export const blockTransactionsRequest = (number: number): RpcRequest<BlockTransactions | null> => ({
  method: 'eth_getBlockByNumber',
  params: [toTag(number), true],
  isResult: nullOr(hasTransactions),
})

/** Requests a block with its parent's hash and its logs' bloom filter. */
export const headerRequest = (block: BlockTag): RpcRequest<NodeHeader | null> => {
  const request = blockRequest(block)
  return {
    ...request,
    isResult: nullOr(
      (value): value is NodeHeader => value !== null && request.isResult(value) && hasHeaderFields(value),
    ),
  }
}

/** Returns whether the result of a request depends on how far the node is. */
export const readsNewest = ({ method, params }: RpcRequest): boolean =>
  method === blockNumberRequest.method || params.includes('latest') || params.includes('pending')

/** Whether a call runs at another time than its block's, so that what it says of that is no time of a head. */
export const replacesTime = ({ params: [, , , others] }: RpcRequest): boolean => others !== undefined

export const transactionCountRequest = (account: Address, block: BlockTag = 'latest'): RpcRequest<Hex> => ({
  method: 'eth_getTransactionCount',
  params: [account, toTag(block)],
  isResult: isCount,
})

export const balanceRequest = (account: Address): RpcRequest<Hex> => ({
  method: 'eth_getBalance',
  params: [account, 'latest'],
  isResult: isQuantity,
})

export const codeRequest = (account: Address): RpcRequest<Hex> => ({
  method: 'eth_getCode',
  params: [account, 'latest'],
  isResult: isData,
})

export const transactionRequest = (hash: Hex): RpcRequest<NodeTransaction | null> => ({
  method: 'eth_getTransactionByHash',
  params: [hash],
  isResult: nullOr((value): value is NodeTransaction => isTransaction(value) && isSame(value.hash, hash)),
})

export const receiptRequest = (hash: Hex): RpcRequest<NodeReceipt | null> => ({
  method: 'eth_getTransactionReceipt',
  params: [hash],
  isResult: nullOr(isReceiptOf(hash)),
})

/** Requests the receipts of a block. Only receipts that `isWanted` selects are validated: do not use the others. */
export const blockReceiptsRequest = (
  block: number,
  isWanted: (hash: Hex) => boolean,
): RpcRequest<NodeReceipt[] | null> => ({
  method: 'eth_getBlockReceipts',
  params: [toTag(block)],
  isResult: nullOr(
    listOf(
      (value): value is NodeReceipt =>
        !isWanted((value as NodeReceipt | null)?.transactionHash ?? '0x') ||
        (isReceipt(value) && Number(value.blockNumber) === block),
    ),
  ),
})

/** Requests the logs of an inclusive range of blocks. */
export const logsRequest = (
  filter: Partial<LogFilter>,
  { fromBlock, toBlock }: { fromBlock: number | bigint; toBlock: number | bigint | 'latest' },
): RpcRequest<NodeLog[]> => ({
  method: 'eth_getLogs',
  params: [{ ...filter, fromBlock: numberToHex(fromBlock), toBlock: toTag(toBlock) }],
  isResult: listOf(isLog),
  isSplit: true,
})

/**
 * Requests the logs of one block by its hash: a node that does not know the block returns an error, never an empty
 * list.
 */
export const blockLogsRequest = (filter: LogFilter, blockHash: Hex): RpcRequest<NodeLog[]> => ({
  method: 'eth_getLogs',
  params: [{ ...filter, blockHash }],
  isResult: listOf((value): value is NodeLog => isLog(value) && isSame(value.blockHash, blockHash)),
})

/** What replaces an account's code, or some words of its storage, during a call. */
export type StateOverride = Record<Address, { code?: Hex; stateDiff?: Record<Hex, Hex> }>

/**
 * The state on which a call runs. `time` (Unix seconds) replaces the block's, if the node supports that, and `override`
 * changes accounts during the call.
 */
export type CallState = {
  block?: BlockTag | undefined
  time?: bigint | undefined
  override?: StateOverride | undefined
}

const stateOf = ({ block = 'latest', time, override }: CallState) => [
  toTag(block),
  ...(override || time !== undefined ? [override ?? {}] : []),
  ...(time === undefined ? [] : [{ time: numberToHex(time) }]),
]

/** Requests the return data of a call, such as a transaction that is simulated. */
export const callRequest = (call: CallParameters, state: CallState = {}): RpcRequest<Hex> => ({
  method: 'eth_call',
  params: [call, ...stateOf(state)],
  isResult: isData,
  ...(state.override && { hasOverride: true }),
})

/** Requests the return data of a call that returns data on every healthy node. */
export const readRequest = (...call: Parameters<typeof callRequest>): RpcRequest<Hex> => ({
  ...callRequest(...call),
  returnsData: true,
})

export const estimateGasRequest = (call: CallParameters, state: CallState = {}): RpcRequest<Hex> => ({
  method: 'eth_estimateGas',
  params: [call, ...stateOf(state)],
  isResult: isCount,
})

export const sendRequest = (signed: SignedBytes): RpcRequest<Hash> => ({
  method: 'eth_sendRawTransaction',
  params: [signed.raw],
  isResult: isHashOf(signed),
})

/**
 * Sends a transaction and requests its receipt (EIP-7966). It has one parameter only: nodes disagree on the form of a
 * timeout, so callers set their own deadline.
 */
export const sendSyncRequest = (signed: SignedBytes): RpcRequest<NodeReceipt | Hash> => ({
  method: 'eth_sendRawTransactionSync',
  params: [signed.raw],
  isResult: (value): value is NodeReceipt | Hash => isHashOf(signed)(value) || isReceiptOf(signed.hash)(value),
})

/**
 * Requests the default trace: anvil keeps it after it has dropped the state that other tracers run on. The limit leaves
 * out its steps, of which there may be millions.
 */
export const traceRequest = (hash: Hex): RpcRequest<NodeTrace | null> =>
  aboutStrangers({
    method: 'debug_traceTransaction',
    params: [hash, { disableStack: true, disableStorage: true, enableMemory: false, limit: 1 }],
    isResult: nullOr(isTrace),
  })

const toTag = (block: BlockTag) => (typeof block === 'string' ? block : numberToHex(block))

/** Returns the number, hash and timestamp (Unix seconds) of a block, or undefined when the node does not have it. */
export function toHeader(block: NodeBlock | null | undefined) {
  if (!block) return undefined
  const { number, hash, timestamp } = block
  return { number: hexToNumber(number), hash, timestamp: hexToNumber(timestamp) }
}
