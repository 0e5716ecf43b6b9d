import { type Address, type Hex, numberToHex } from 'viem'
import { isUnreachable, type RpcError } from '../rpc/node-errors.ts'
import { redact } from '../rpc/redact.ts'
import { callRequest, estimateGasRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import type { Call, IntentKind } from './intent.ts'
import type { Fees } from './signing-account.ts'

type Verdict =
  | { is: 'passes'; gas: number }
  | { is: 'refused'; data?: Hex; message: string }
  | { is: 'unfunded' }
  | { is: 'unreachable' }

/** The most gas that one transaction of a kind may need; what needs more is refused, never clamped. */
const ceilings: Record<IntentKind, number> = {
  open: 2_000_000,
  add: 1_500_000,
  reduce: 1_500_000,
  ladder: 1_000_000,
  register: 2_000_000,
  link: 500_000,
  prices: 5_000_000,
  exit: 8_000_000,
  settle: 500_000,
}

/**
 * A gas limit is this much above what the estimate found. A later call of the same shape is simulated with less, so that
 * what passes there has room when it is mined; its own calldata may cost a little more than that of the estimated one.
 */
const MARGIN_PERCENT = 130
const SIMULATED_PERCENT = 110

/**
 * Asks the chain whether a call would succeed at `latest`, and with how much gas: one round trip. The first call of a
 * shape (kind and length) is estimated; later ones are called with the estimate that is remembered, and only one that
 * runs out of it is estimated again. `exit`, `prices` and `settle` take their ceiling: a batch that catches the failure of
 * its items would pass with too little gas and skip them.
 */
export function createSimulator(rpc: RpcTransport, from: Address) {
  const estimates = new Map<string, number>()

  async function ask(kind: IntentKind, call: Call, fees: Fees): Promise<Verdict> {
    const ceiling = ceilings[kind]
    if (kind === 'exit' || kind === 'prices' || kind === 'settle') {
      const error = await callWith(call, fees, ceiling)
      return error === undefined ? { is: 'passes', gas: ceiling } : refusal(error)
    }
    const shape = `${kind} ${call.data.length}`
    const known = estimates.get(shape)
    if (known !== undefined) {
      const error = await callWith(call, fees, percent(known, SIMULATED_PERCENT))
      if (error === undefined) return { is: 'passes', gas: limitOf(known, ceiling) }
      if (!mayBeOutOfGas(error)) return refusal(error)
    }
    const { result, error } = await rpc.call(estimateGasRequest(request(call)))
    if (error !== undefined) return refusal(error)
    const estimate = Number(result)
    if (!(estimate <= ceiling))
      return { is: 'refused', message: `it needs ${estimate} gas, above the ceiling of ${ceiling}` }
    estimates.set(shape, Math.max(estimate, known ?? 0))
    return { is: 'passes', gas: limitOf(estimate, ceiling) }
  }

  // Fees make the node check the balance too.
  async function callWith(call: Call, { maxFeePerGas, maxPriorityFeePerGas }: Fees, gas: number) {
    const fees = { maxFeePerGas: numberToHex(maxFeePerGas), maxPriorityFeePerGas: numberToHex(maxPriorityFeePerGas) }
    const { error } = await rpc.call(callRequest({ ...request(call), ...fees, gas: numberToHex(gas) }))
    return error
  }
  const request = ({ to, data }: Call) => ({ from, to, data })

  return async (kind: IntentKind, call: Call, fees: Fees): Promise<Verdict> => {
    try {
      return await ask(kind, call, fees)
    } catch (error) {
      if (isUnreachable(error)) return { is: 'unreachable' }
      throw error
    }
  }
}

const percent = (gas: number, share: number) => Math.ceil((gas * share) / 100)
const limitOf = (estimate: number, ceiling: number) => Math.min(percent(estimate, MARGIN_PERCENT), ceiling)

/** Running out of gas in an inner call shows as a revert without data. */
const mayBeOutOfGas = (error: RpcError) =>
  /out ?of ?gas|intrinsic gas|gas required exceeds/i.test(error.message) ||
  (isVerdict(error) && (error.data ?? '0x') === '0x')

/** Whether an error is the call's own failure, in contrast to the node's or the account's. */
const isVerdict = ({ code, message, data }: RpcError) =>
  code === 3 || data !== undefined || /revert|out ?of ?gas|gas required exceeds|invalid opcode|EVM error/i.test(message)

function refusal(error: RpcError): Verdict {
  if (/insufficient funds/i.test(error.message)) return { is: 'unfunded' }
  if (!isVerdict(error)) return { is: 'unreachable' }
  return error.data === undefined
    ? { is: 'refused', message: redact(error.message) }
    : { is: 'refused', data: error.data, message: 'the call reverts' }
}
