import { type Address, bytesToHex, type Hex, hexToBytes, parseAbi } from 'viem'
import { encodeCall, tryDecodeResult } from '../chain/encode-and-decode-call.ts'
import type { RpcResponse } from '../rpc/endpoint-client.ts'
import { callRequest, estimateGasRequest, type RpcRequest } from '../rpc/requests.ts'
import type { Call } from './relay-types.ts'

/** Arbitrum's interface to its node. https://docs.arbitrum.io/build-decentralized-apps/nodeinterface/reference */
const NODE_INTERFACE: Address = '0x00000000000000000000000000000000000000C8'
const nodeInterfaceAbi = parseAbi([
  'function gasEstimateL1Component(address to, bool contractCreation, bytes data) payable returns (uint64 gasEstimateForL1, uint256 baseFee, uint256 l1BaseFeeEstimate)',
])
const ESTIMATE = 'gasEstimateL1Component'

/** The bytes of a typical call that are not zero. */
const TYPICAL_BYTES = 400
/** The gas of a transfer without data, as far as it is not for L1. */
const PLAIN_TRANSFER_GAS = 21_000
/**
 * How long amounts count for data of the same length. The sequencer changes its price for L1 with each batch. They
 * expire together, so that a quote and the transaction after it see the same price.
 */
const MEMORY_MS = 5_000

/** As much data as an intent has once L1's compression has removed its zeros. */
const TYPICAL_DATA = bytesToHex(
  Uint8Array.from({ length: TYPICAL_BYTES }, (_, index) => (index * index * 167 + 13) % 251),
)

export type L1Gas = {
  /** Returns the gas that a call needs for its data on L1 at the moment; 0 on chains without such gas. */
  of(call: Call, options?: { isFresh?: boolean }): Promise<number>
  /**
   * Returns about what a call with that data needs, from the gas of a typical call, which is read once for all calls.
   */
  about(data?: Hex): Promise<number>
}

/**
 * Creates the reader of the gas for L1: on Arbitrum chains, estimates and receipts contain it, and it multiplies while
 * L1 is expensive. `isArbitrum` returns whether the chain has such gas. Throws CHAIN_UNREACHABLE.
 */
export function createL1Gas(
  callNode: <Result>(request: RpcRequest<Result>) => Promise<RpcResponse<Result>>,
  from: Address,
  isArbitrum: () => boolean,
): L1Gas {
  let memory = { at: 0, gas: new Map<string, number>() }

  async function read({ to, data }: Call): Promise<number> {
    const call = encodeCall(nodeInterfaceAbi, ESTIMATE, [to, false, data])
    const { result } = await callNode(callRequest({ to: NODE_INTERFACE, data: call }))
    const estimate = result && tryDecodeResult(nodeInterfaceAbi, ESTIMATE, { success: true, data: result })
    return estimate ? Number(estimate[0]) : readFromTransfer()
  }

  /** Without the interface, what a transfer needs beyond its own gas is for L1. */
  async function readFromTransfer(): Promise<number> {
    const { result } = await callNode(estimateGasRequest({ from, to: from, data: '0x' }))
    return Math.max(0, Number(result ?? 0) - PLAIN_TRANSFER_GAS)
  }

  async function of(call: Call, { isFresh = false } = {}): Promise<number> {
    if (!isArbitrum()) return 0
    if (isFresh || Date.now() - memory.at >= MEMORY_MS) memory = { at: Date.now(), gas: new Map() }
    const { gas: known } = memory
    const shape = `${call.to} ${call.data.length}`
    const gas = known.get(shape) ?? (await read(call))
    known.set(shape, gas)
    return gas
  }

  return {
    of,
    about: async (data = TYPICAL_DATA) => {
      const typical = await of({ to: from, data: TYPICAL_DATA })
      return Math.ceil(typical * Math.max(1, nonZeroBytes(data) / TYPICAL_BYTES))
    },
  }
}

const nonZeroBytes = (data: Hex) => hexToBytes(data).reduce((count, byte) => count + Number(byte !== 0), 0)
