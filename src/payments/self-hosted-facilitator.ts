import { type TransferRefusal, transferRefusalOf } from '@agent-trading-service/protocol/transfer-refusal'
import type { FacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { type Abi, type Address, concat, encodeFunctionData, getAddress, type Hex, keccak256 } from 'viem'
import { getCode, readContract } from 'viem/actions'
import type { Executor } from '../executor/client.ts'
import type { Call, RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { createViemClient } from '../rpc/viem-client.ts'
import { type Facilitator, toReasonCode } from './facilitator.ts'
import type { Payment } from './parse-payment.ts'

/**
 * Returns the facilitator inside the Worker. It verifies with the x402 library and settles through the relayer's lane,
 * as all other transactions of that account.
 */
export function selfHostedFacilitator(
  rpc: RpcTransport,
  relayer: Executor,
  /** Whether a payment of the payer has ever settled. */
  hasPaid: (payer: Address) => boolean = () => false,
): Facilitator {
  return {
    async verify(payment, requirements) {
      const chain = observeReads(rpc)
      const scheme = new ExactEvmScheme(signerOf(chain.reads, relayer.address, sendNothing))
      const { isValid, invalidReason } = await scheme.verify(payment.payload, requirements)
      if (isValid) return { kind: 'valid' }
      if (chain.wasUnreachable()) return { kind: 'unavailable' }
      return { kind: 'refused', reason: chain.transferRefusal() ?? toReasonCode(invalidReason) }
    },
    async settle(payment, requirements) {
      const chain = observeReads(rpc)
      let outcome: RelayOutcome | undefined
      const send = async (to: Address, data: Hex) => {
        const isNewContract = chain.hasCode(payment.payer) && !hasPaid(payment.payer)
        outcome = await relayer.relay(toRelayRequest(payment, { to, data }, isNewContract))
        return outcome
      }
      const scheme = new ExactEvmScheme(signerOf(chain.reads, relayer.address, send))
      const { success, transaction, errorReason } = await scheme.settle(payment.payload, requirements)
      if (success) return { kind: 'settled', transaction: transaction as Hex }
      switch (outcome?.state) {
        case 'mined':
        case 'unknown':
          return { kind: 'unknown' }
        case 'unsent':
          return { kind: 'unsent' }
        case 'busy':
        case 'exhausted':
        case 'costly':
        case 'unfunded':
        case 'paused':
          return { kind: 'unsent', outcome }
        default:
          if (chain.wasUnreachable()) return { kind: 'unsent' }
          return { kind: 'refused', reason: chain.transferRefusal() ?? toReasonCode(errorReason) }
      }
    },
  }
}

/** The digest is a function of the call, so the lane executes an authorization at most once. */
const toRelayRequest = (
  { payer, nonce, validBefore }: Payment,
  { to, data }: Call,
  isNewContract: boolean,
): RelayRequest => ({
  digest: keccak256(concat([to, data])),
  kind: 'settle',
  by: { as: 'payer', account: payer, isContract: isNewContract },
  groupNonce: nonce,
  deadline: validBefore,
  call: { to, data },
})

type SendCall = (to: Address, data: Hex) => Promise<RelayOutcome>
type ChainReads = Pick<FacilitatorEvmSigner, 'readContract' | 'getCode'>

const sendNothing: SendCall = async () => {
  throw new Error('A verification sends nothing')
}

/** Returns the library's signer over a lane, which has the receipt as soon as it has the hash. */
function signerOf(reads: ChainReads, relayer: Address, send: SendCall): FacilitatorEvmSigner {
  let outcome: RelayOutcome | undefined
  return {
    getAddresses: () => [relayer],
    readContract: reads.readContract,
    getCode: reads.getCode,
    // The scheme verifies with getCode and isValidSignature and does not call the next two.
    verifyTypedData: async () => false,
    sendTransaction: async () => {
      throw new Error('A settlement deploys no wallet')
    },
    async writeContract({ address, abi, functionName, args }) {
      outcome = await send(address, encodeFunctionData({ abi: abi as Abi, functionName, args }))
      if ('hash' in outcome && outcome.hash !== undefined) return outcome.hash
      throw new Error(`The settlement is ${outcome.state}`)
    },
    async waitForTransactionReceipt() {
      if (outcome?.state === 'mined') return { status: 'success', logs: outcome.logs as never }
      if (outcome?.state === 'reverted') return { status: 'reverted' }
      throw new Error('The settlement is not included yet')
    },
  }
}

/** `name()` and `version()`, by which the library explains a failed simulation. */
const DOMAIN_QUESTIONS = ['0x06fdde03', '0x54fd4d50']

/** Empties the calls of a batch that ask the asset for its signing domain: that of the requirements counts. */
const withoutQuestions = (arg: unknown): unknown =>
  Array.isArray(arg)
    ? arg.map(call => (DOMAIN_QUESTIONS.includes(call.callData) ? { ...call, callData: '0x' } : call))
    : arg

/**
 * Returns the reads for the library, and what they showed: whether one reached no node, which the library reports as
 * invalid, why the asset refuses the transfer, and which accounts have code.
 */
function observeReads(rpc: RpcTransport) {
  let isUnreachable = false
  let transferRefusal: TransferRefusal | undefined
  const withCode = new Set<Address>()
  const client = createViemClient({
    ...rpc,
    async call(request) {
      const response = await rpc.call(request).catch(error => {
        isUnreachable = true
        throw error
      })
      transferRefusal ??= transferRefusalOf(response.error?.data)
      return response
    },
  })
  const reads: ChainReads = {
    readContract: ({ args, ...read }) => readContract(client, { ...read, args: args?.map(withoutQuestions) } as never),
    // The library may start this read without awaiting it, so it must not reject.
    async getCode(args) {
      const code = await getCode(client, args).catch(() => undefined)
      if (code !== undefined && code !== '0x') withCode.add(getAddress(args.address))
      return code
    },
  }
  return {
    reads,
    wasUnreachable: () => isUnreachable,
    transferRefusal: () => transferRefusal,
    hasCode: (address: Address) => withCode.has(address),
  }
}
