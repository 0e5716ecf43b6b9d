import { type Address, type Hex, numberToHex } from 'viem'
import type { TransactionFees } from '../chain/transaction-fees.ts'
import { createRequestBatcher } from '../rpc/batcher.ts'
import { callOnState } from '../rpc/call-on-state.ts'
import { isCallFailure, isUnfunded, isUnreachable, type RpcError, redact } from '../rpc/node-errors.ts'
import { type CallState, callRequest, estimateGasRequest, type RpcRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { TYPICAL_GAS } from './gas-budgets.ts'
import { createL1Gas, type L1Gas } from './l1-gas.ts'
import type { Call, IntentKind } from './relay-types.ts'

export type SimulationResult =
  | ({ kind: 'passed' } & GasLimits)
  | { kind: 'rejected'; data?: Hex; message: string }
  | { kind: 'unfunded' }
  | { kind: 'unreachable' }
  /** The base fee has risen above the given maximum fee. */
  | { kind: 'fee too low' }

/**
 * The gas limit of a transaction, the part of it that executes the call, and what its data needs on L1 at the moment.
 */
export type GasLimits = { gas: number } & GasCost

/**
 * A transaction to simulate on a state. `isFresh`: with L1's present gas.
 * `runsStrangersCode`: a contract that signed decides what it costs and whether it succeeds.
 */
type Planned = {
  kind: IntentKind
  call: Call
  fees: TransactionFees
  state: CallState
  isFresh?: boolean
  runsStrangersCode?: boolean
}

/** The gas of a transaction: for executing its call, and for its data on L1. */
export type GasCost = { l2Gas: number; l1Gas: number }

export type Simulate = (planned: Planned) => Promise<SimulationResult>

/** The ceiling of each kind for executing the call. A call that needs more is rejected; its limit is never clamped. */
const MAX_GAS: Record<IntentKind, number> = {
  open: 2_000_000,
  add: 1_500_000,
  reduce: 1_500_000,
  ladder: 1_000_000,
  order: 1_000_000,
  cancelOrder: 500_000,
  register: 2_000_000,
  link: 500_000,
  owner: 3_000_000,
  prices: 5_000_000,
  exit: 8_000_000,
  settle: 500_000,
  feedback: 1_500_000,
  checkpoint: 2_000_000,
  vaultRequests: 8_000_000,
}

/** The part of a gas limit for L1, relative to the estimate: it may grow until the sequencer takes the transaction. */
const L1_PERCENT = 200

/**
 * The gas limit of a transaction, and of a later simulation, relative to the estimate. Later calls of the same shape
 * are simulated with less than the transaction gets: their calldata may cost a little more than that of the estimated
 * call.
 */
const LIMIT_PERCENT = 130
const SIMULATION_PERCENT = 110
/** Higher estimates are not remembered: others would need as much in their budgets. */
const MAX_REMEMBERED_PERCENT = 50

/**
 * Returns a function that simulates a call and returns its gas limit, with one request; concurrent calls share a batch.
 * The first call of a shape (kind and length) is estimated. Later calls are simulated with that estimate, and estimated
 * again if they fail, because lack of gas can look like any other failure. `exit` and `prices` always get their
 * ceiling: a batch that catches failures of its items would pass with too little gas and skip them. A call that runs a
 * stranger's code is estimated, and simulated with the limit of its transaction, so that the code sees the same
 * account, gas and gas price in both. On Arbitrum chains an estimate contains gas for L1, which changes by the minute:
 * ceilings, remembered estimates and simulations are without it, limits are with it.
 */
export function createSimulator(
  rpc: RpcTransport,
  from: Address,
  isArbitrum: () => boolean,
): { simulate: Simulate; gasCost: (kind: IntentKind) => Promise<GasCost>; l1Gas: L1Gas } {
  const estimates = new Map<string, number>()
  const callNode = createRequestBatcher(rpc)
  const simulateAt = <Result>(state: CallState, requestAt: (state: CallState) => RpcRequest<Result>) =>
    callOnState(callNode, state, requestAt)
  const l1Gas = createL1Gas(callNode, from, isArbitrum)

  async function simulate(planned: Planned): Promise<SimulationResult> {
    const { kind, call, fees, state, isFresh = false, runsStrangersCode = false } = planned
    const maxGas = MAX_GAS[kind]
    const shape = `${kind} ${call.data.length}`
    const isAtCeiling = kind === 'exit' || kind === 'prices'
    const known = runsStrangersCode ? undefined : estimates.get(shape)
    const limit = isAtCeiling ? maxGas : known && percentOf(known, SIMULATION_PERCENT)
    // An estimate contains exactly this; for a known call about as much will do.
    const readExactly = () => l1Gas.of(call, { isFresh })
    const [aboutForL1, failure] = await Promise.all([
      isFresh || limit === undefined ? readExactly() : l1Gas.about(call.data),
      limit === undefined ? undefined : errorOfCall(planned, limit),
    ])
    const passed = (l2Gas: number, forL1 = aboutForL1): SimulationResult => ({
      kind: 'passed',
      gas: l2Gas + percentOf(forL1, L1_PERCENT),
      l2Gas,
      l1Gas: forL1,
    })
    if (isAtCeiling) return failure === undefined ? passed(maxGas) : resultOf(failure)
    if (known !== undefined) {
      if (failure === undefined) return passed(gasLimitOf(known, maxGas))
      if (!mayPassWithMoreGas(failure)) return resultOf(failure)
    }
    // With the fees of the transaction, so that a contract cannot tell the estimate from it.
    const transaction = { from, to: call.to, data: call.data, ...toHex(fees) }
    const { result, error } = await simulateAt(state, at => estimateGasRequest(transaction, at))
    if (error !== undefined) return isAllowanceBelow(error, maxGas) ? { kind: 'unfunded' } : resultOf(error)
    const forL1 = limit === undefined ? aboutForL1 : await readExactly()
    const estimate = Math.max(0, Number(result) - forL1)
    if (!(estimate <= maxGas))
      return { kind: 'rejected', message: `it needs ${estimate} gas, above the ceiling of ${maxGas}` }
    const gasLimit = gasLimitOf(estimate, maxGas)
    if (runsStrangersCode) {
      const error = await errorOfCall(planned, gasLimit + percentOf(forL1, L1_PERCENT))
      return error === undefined ? passed(gasLimit, forL1) : resultOf(error)
    }
    if (estimate <= percentOf(maxGas, MAX_REMEMBERED_PERCENT)) estimates.set(shape, Math.max(estimate, known ?? 0))
    return passed(gasLimit, forL1)
  }

  /** Runs a call with fees, which make the node check the balance too. Returns its error, or undefined if it passes. */
  async function errorOfCall({ call, fees, state }: Planned, gas: number): Promise<RpcError | undefined> {
    const transaction = { from, to: call.to, data: call.data, ...toHex(fees), gas: numberToHex(gas) }
    const { error } = await simulateAt(state, at => callRequest(transaction, at))
    return error
  }

  return {
    l1Gas,
    async gasCost(kind) {
      const l2Gas = TYPICAL_GAS[kind] ?? percentOf(MAX_GAS[kind], MAX_REMEMBERED_PERCENT)
      return { l2Gas, l1Gas: await l1Gas.about() }
    },
    async simulate(planned) {
      try {
        return await simulate(planned)
      } catch (error) {
        if (isUnreachable(error)) return { kind: 'unreachable' }
        throw error
      }
    },
  }
}

const percentOf = (gas: number, percent: number) => Math.ceil((gas * percent) / 100)
const gasLimitOf = (estimate: number, maxGas: number) => Math.min(percentOf(estimate, LIMIT_PERCENT), maxGas)

/** Whether a call may have failed for lack of gas. A contract that catches an inner failure may name another reason. */
const mayPassWithMoreGas = (error: RpcError) => isCallFailure(error) || /intrinsic gas/i.test(error.message)

const toHex = ({ maxFeePerGas, maxPriorityFeePerGas }: TransactionFees) => ({
  maxFeePerGas: numberToHex(maxFeePerGas),
  maxPriorityFeePerGas: numberToHex(maxPriorityFeePerGas),
})

/**
 * Whether the account's balance pays for less gas than a call of this kind may need: nodes estimate only up to there.
 */
function isAllowanceBelow({ message }: RpcError, maxGas: number): boolean {
  const [, allowance] = /gas required exceeds allowance\D*(\d+)/i.exec(message) ?? []
  return allowance !== undefined && Number(allowance) < maxGas
}

const isFeeTooLow = ({ message }: RpcError) => /less than (the )?block base fee|fee cap .*base ?fee/i.test(message)

function resultOf(error: RpcError): SimulationResult {
  if (isUnfunded(error)) return { kind: 'unfunded' }
  if (!isCallFailure(error)) return { kind: isFeeTooLow(error) ? 'fee too low' : 'unreachable' }
  return error.data === undefined
    ? { kind: 'rejected', message: redact(error.message) }
    : { kind: 'rejected', data: error.data, message: 'the call reverts' }
}
