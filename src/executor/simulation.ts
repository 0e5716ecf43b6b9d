import { type Address, type Hex, numberToHex } from 'viem'
import { createRequestBatcher } from '../rpc/batcher.ts'
import { isUnreachable, type RpcError, redact } from '../rpc/node-errors.ts'
import { callRequest, estimateGasRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { TransactionFees } from './chain-head.ts'
import type { Call, IntentKind } from './relay-types.ts'

type SimulationResult =
  | { kind: 'passed'; gas: number }
  | { kind: 'rejected'; data?: Hex; message: string }
  | { kind: 'unfunded' }
  | { kind: 'unreachable' }
  /** The base fee has risen above the given maximum fee. */
  | { kind: 'fee too low' }

/** A transaction to simulate, on the state of a block: the newest one if `block` is undefined. */
type Planned = { kind: IntentKind; call: Call; fees: TransactionFees; block: bigint | undefined }

export type Simulate = (planned: Planned) => Promise<SimulationResult>

/** The gas ceiling of each kind. A call that needs more is rejected; its limit is never clamped. */
const MAX_GAS: Record<IntentKind, number> = {
  open: 2_000_000,
  add: 1_500_000,
  reduce: 1_500_000,
  ladder: 1_000_000,
  register: 2_000_000,
  link: 500_000,
  owner: 3_000_000,
  prices: 5_000_000,
  exit: 8_000_000,
  settle: 500_000,
  feedback: 1_500_000,
}

/**
 * The gas limit of a transaction, and of a later simulation, relative to the estimate. Later calls of the same shape are
 * simulated with less than the transaction gets: their calldata may cost a little more than that of the estimated call.
 */
const LIMIT_PERCENT = 130
const SIMULATION_PERCENT = 110
/** Higher estimates are not remembered: a signer's contract may burn gas, and others would need as much in their budgets. */
const MAX_REMEMBERED_PERCENT = 50

/**
 * Returns a function that simulates a call and returns its gas limit, with one request; concurrent calls
 * share a batch. The first call of a shape (kind and length) is estimated. Later calls are simulated with that
 * estimate, and estimated again if they fail, because lack of gas can look like any other failure. `exit` and `prices`
 * always get their ceiling: a batch that catches failures of its items would pass with too little gas and skip them.
 * `settle` is always estimated, because the payer's code decides what it costs.
 */
export function createSimulator(rpc: RpcTransport, from: Address): Simulate {
  const estimates = new Map<string, number>()
  const callNode = createRequestBatcher(rpc)

  async function simulate(planned: Planned): Promise<SimulationResult> {
    const { kind, call, block } = planned
    const maxGas = MAX_GAS[kind]
    if (kind === 'exit' || kind === 'prices') {
      const error = await errorOfCall(planned, maxGas)
      return error === undefined ? { kind: 'passed', gas: maxGas } : resultOf(error)
    }
    const shape = `${kind} ${call.data.length}`
    const known = kind === 'settle' ? undefined : estimates.get(shape)
    if (known !== undefined) {
      const error = await errorOfCall(planned, percentOf(known, SIMULATION_PERCENT))
      if (error === undefined) return { kind: 'passed', gas: gasLimitOf(known, maxGas) }
      if (!mayPassWithMoreGas(error)) return resultOf(error)
    }
    const { result, error } = await callNode(estimateGasRequest({ from, to: call.to, data: call.data }, block))
    if (error !== undefined) return resultOf(error)
    const estimate = Number(result)
    if (!(estimate <= maxGas))
      return { kind: 'rejected', message: `it needs ${estimate} gas, above the ceiling of ${maxGas}` }
    if (estimate <= percentOf(maxGas, MAX_REMEMBERED_PERCENT)) estimates.set(shape, Math.max(estimate, known ?? 0))
    return { kind: 'passed', gas: gasLimitOf(estimate, maxGas) }
  }

  /** Runs a call with fees, which make the node check the balance too. Returns its error, or undefined if it passes. */
  async function errorOfCall({ call, fees, block }: Planned, gas: number): Promise<RpcError | undefined> {
    const { error } = await callNode(
      callRequest(
        {
          from,
          to: call.to,
          data: call.data,
          maxFeePerGas: numberToHex(fees.maxFeePerGas),
          maxPriorityFeePerGas: numberToHex(fees.maxPriorityFeePerGas),
          gas: numberToHex(gas),
        },
        block,
      ),
    )
    return error
  }

  return async planned => {
    try {
      return await simulate(planned)
    } catch (error) {
      if (isUnreachable(error)) return { kind: 'unreachable' }
      throw error
    }
  }
}

const percentOf = (gas: number, percent: number) => Math.ceil((gas * percent) / 100)
const gasLimitOf = (estimate: number, maxGas: number) => Math.min(percentOf(estimate, LIMIT_PERCENT), maxGas)

/** Whether a call may have failed for lack of gas. A contract that catches an inner failure may name another reason. */
const mayPassWithMoreGas = (error: RpcError) => isCallFailure(error) || /intrinsic gas/i.test(error.message)

/** Whether an error is a failure of the call, rather than of the node or the account. */
const isCallFailure = ({ code, message, data }: RpcError) =>
  code === 3 || data !== undefined || /revert|out ?of ?gas|gas required exceeds|invalid opcode|EVM error/i.test(message)

const isFeeTooLow = ({ message }: RpcError) => /less than (the )?block base fee|fee cap .*base ?fee/i.test(message)

function resultOf(error: RpcError): SimulationResult {
  if (/insufficient funds/i.test(error.message)) return { kind: 'unfunded' }
  if (!isCallFailure(error)) return { kind: isFeeTooLow(error) ? 'fee too low' : 'unreachable' }
  return error.data === undefined
    ? { kind: 'rejected', message: redact(error.message) }
    : { kind: 'rejected', data: error.data, message: 'the call reverts' }
}
