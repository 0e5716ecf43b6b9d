import type { FacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { type Abi, type Address, concat, encodeFunctionData, type Hex, keccak256 } from 'viem'
import { getCode, readContract } from 'viem/actions'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/relay-types.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { createViemClient } from '../rpc/viem-client.ts'
import { type Facilitator, toReasonCode } from './facilitator.ts'
import type { Payment } from './parse-payment.ts'

/**
 * Returns the facilitator inside the Worker. It verifies with the x402 library and settles through the relayer's lane, as
 * all other transactions of that account.
 */
export function selfHostedFacilitator(rpc: RpcTransport, relayer: Executor): Facilitator {
  return {
    async verify(payment, requirements) {
      const chain = observeReads(rpc)
      const scheme = new ExactEvmScheme(signerOf(chain.reads, relayer.address, sendNothing))
      const { isValid, invalidReason } = await scheme.verify(payment.payload, requirements)
      if (isValid) return { kind: 'valid' }
      return chain.wasUnreachable() ? { kind: 'unavailable' } : { kind: 'refused', reason: toReasonCode(invalidReason) }
    },
    async settle(payment, requirements) {
      const chain = observeReads(rpc)
      let outcome: RelayOutcome | undefined
      const send = async (to: Address, data: Hex) => {
        outcome = await relayer.relay(toRelayRequest(payment, to, data))
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
        case 'busy':
        case 'unfunded':
        case 'paused':
          return { kind: 'unsent' }
        default:
          return chain.wasUnreachable() ? { kind: 'unsent' } : { kind: 'refused', reason: toReasonCode(errorReason) }
      }
    },
  }
}

/** The digest is a function of the call, so the lane executes an authorization at most once. */
const toRelayRequest = ({ payer, nonce, validBefore }: Payment, to: Address, data: Hex): RelayRequest => ({
  digest: keccak256(concat([to, data])),
  kind: 'settle',
  group: `payment:${payer}`,
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

/** Returns the reads for the library, and whether one reached no node: the library reports that as invalid. */
function observeReads(rpc: RpcTransport): { reads: ChainReads; wasUnreachable: () => boolean } {
  let isUnreachable = false
  const client = createViemClient({
    ...rpc,
    call: request =>
      rpc.call(request).catch(error => {
        isUnreachable = true
        throw error
      }),
  })
  return {
    reads: {
      readContract: args => readContract(client, args as never),
      // The library may start this read without awaiting it, so it must not reject.
      getCode: args => getCode(client, args).catch(() => undefined),
    },
    wasUnreachable: () => isUnreachable,
  }
}
