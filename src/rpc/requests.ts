import { type Address, type Hex, hexToNumber, numberToHex } from 'viem'

declare const RESULT: unique symbol

/** A JSON-RPC request. `Result` is the type of its result as the Ethereum JSON-RPC specification defines it. */
export type RpcRequest<Result = unknown> = {
  method: string
  params: readonly unknown[]
  readonly [RESULT]?: Result
}

/** A transaction to execute without sending it. Quantities are hex. */
export type CallParameters = {
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

/** A block header. `baseFeePerGas` is absent before EIP-1559. */
export type NodeBlock = { number: Hex; hash: Hex; timestamp: Hex; baseFeePerGas?: Hex }

export type NodeTransaction = { hash: Hex; from: Address; to: Address | null; input: Hex; blockNumber: Hex | null }

/** A log. Some nodes omit the time of its block. */
export type NodeLog = {
  address: Address
  topics: Hex[]
  data: Hex
  blockNumber: Hex
  blockHash: Hex
  transactionHash: Hex
  logIndex: Hex
  blockTimestamp?: Hex | null
}

/** A receipt. `blockHash` is zero when a sequencer returns it before it has sealed the block. */
export type NodeReceipt = {
  transactionHash: Hex
  from: Address
  to: Address | null
  blockNumber: Hex
  blockHash: Hex | null
  status: Hex
  gasUsed: Hex
  logs: NodeLog[]
}

/** The result of geth's default tracer, without its steps. `returnValue` may lack the 0x prefix. */
export type NodeTrace = { failed?: boolean; returnValue?: string }

type BlockTag = number | bigint | 'latest' | 'finalized'

export const chainIdRequest: RpcRequest<Hex> = { method: 'eth_chainId', params: [] }
export const blockNumberRequest: RpcRequest<Hex> = { method: 'eth_blockNumber', params: [] }

export const blockRequest = (block: BlockTag): RpcRequest<NodeBlock | null> => ({
  method: 'eth_getBlockByNumber',
  params: [toTag(block), false],
})

export const transactionCountRequest = (account: Address): RpcRequest<Hex> => ({
  method: 'eth_getTransactionCount',
  params: [account, 'latest'],
})

export const balanceRequest = (account: Address): RpcRequest<Hex> => ({
  method: 'eth_getBalance',
  params: [account, 'latest'],
})

export const codeRequest = (account: Address): RpcRequest<Hex> => ({
  method: 'eth_getCode',
  params: [account, 'latest'],
})

export const transactionRequest = (hash: Hex): RpcRequest<NodeTransaction | null> => ({
  method: 'eth_getTransactionByHash',
  params: [hash],
})

export const receiptRequest = (hash: Hex): RpcRequest<NodeReceipt | null> => ({
  method: 'eth_getTransactionReceipt',
  params: [hash],
})

/** Requests the logs of an inclusive range of blocks. */
export const logsRequest = (
  filter: LogFilter,
  { fromBlock, toBlock }: { fromBlock: number | bigint; toBlock: number | bigint },
): RpcRequest<NodeLog[]> => ({
  method: 'eth_getLogs',
  params: [{ ...filter, fromBlock: numberToHex(fromBlock), toBlock: numberToHex(toBlock) }],
})

/** Requests the return data of a call. `codeAt` is code that the call finds at an address instead of the real code. */
export const callRequest = (
  call: CallParameters,
  block: BlockTag = 'latest',
  codeAt?: Record<Address, { code: Hex }>,
): RpcRequest<Hex> => ({
  method: 'eth_call',
  params: codeAt === undefined ? [call, toTag(block)] : [call, toTag(block), codeAt],
})

export const estimateGasRequest = (call: CallParameters): RpcRequest<Hex> => ({
  method: 'eth_estimateGas',
  params: [call],
})

export const sendRequest = (raw: Hex): RpcRequest<Hex> => ({ method: 'eth_sendRawTransaction', params: [raw] })

/**
 * Sends a transaction and requests its receipt (EIP-7966). It has one parameter only: nodes disagree on the form of a
 * timeout, so callers set their own deadline.
 */
export const sendSyncRequest = (raw: Hex): RpcRequest<NodeReceipt | Hex> => ({
  method: 'eth_sendRawTransactionSync',
  params: [raw],
})

/** Requests the default trace: anvil keeps it after it has dropped the state that other tracers run on. */
export const traceRequest = (hash: Hex): RpcRequest<NodeTrace | null> => ({
  method: 'debug_traceTransaction',
  params: [hash, { disableStack: true, disableStorage: true, enableMemory: false }],
})

const toTag = (block: BlockTag) => (typeof block === 'string' ? block : numberToHex(block))

/** Returns the number, hash and timestamp (Unix seconds) of a block, or undefined when the node does not have it. */
export function toHeader(block: NodeBlock | null | undefined) {
  if (!block) return undefined
  const { number, hash, timestamp } = block
  return { number: hexToNumber(number), hash, timestamp: hexToNumber(timestamp) }
}
