import type { FacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { type Abi, type Address, concat, encodeFunctionData, type Hex, keccak256 } from 'viem'
import { getCode, readContract } from 'viem/actions'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome } from '../executor/intent.ts'
import type { RpcTransport } from '../rpc/transport.ts'
import { createViemClient } from '../rpc/viem-client.ts'
import { type Facilitator, reasonOf } from './hosted-facilitator.ts'
import type { Payment } from './parse-payment.ts'

/**
 * The facilitator inside the Worker: the protocol's own verification, and settlements that go through the relayer's
 * lane as every other transaction does, so that no nonce of the account is lost.
 */
export function selfHostedFacilitator(rpc: RpcTransport, relayer: Executor): Facilitator {
  return {
    async verify(payment, requirements) {
      const chain = observed(rpc)
      const scheme = new ExactEvmScheme(signerOf(chain.client, relayer.address, neverSends))
      const { isValid, invalidReason } = await scheme.verify(payment.payload, requirements)
      if (isValid) return { is: 'valid' }
      return chain.wasUnreachable() ? { is: 'unavailable' } : { is: 'refused', reason: reasonOf(invalidReason) }
    },
    async settle(payment, requirements) {
      const chain = observed(rpc)
      let outcome: RelayOutcome | undefined
      const send = async (to: Address, data: Hex) => {
        outcome = await relayer.relay(relayOf(payment, to, data))
        return outcome
      }
      const scheme = new ExactEvmScheme(signerOf(chain.client, relayer.address, send))
      const { success, transaction, errorReason } = await scheme.settle(payment.payload, requirements)
      if (success) return { is: 'settled', transaction: transaction as Hex }
      switch (outcome?.state) {
        case 'mined':
        case 'unknown':
          return { is: 'open' }
        case 'unsent':
        case 'busy':
        case 'unfunded':
        case 'paused':
          return { is: 'untouched' }
        default:
          return chain.wasUnreachable() ? { is: 'untouched' } : { is: 'refused', reason: reasonOf(errorReason) }
      }
    },
  }
}

/** The call decides: the same authorization is the same message to the lane, which never executes it twice. */
const relayOf = ({ payer, nonce, validBefore }: Payment, to: Address, data: Hex) => ({
  digest: keccak256(concat([to, data])),
  kind: 'settle' as const,
  group: `payment:${payer}`,
  groupNonce: nonce,
  deadline: validBefore,
  call: { to, data },
})

type Send = (to: Address, data: Hex) => Promise<RelayOutcome>
type Reads = Pick<FacilitatorEvmSigner, 'readContract' | 'getCode'>

const neverSends: Send = async () => {
  throw new Error('A verification sends nothing')
}

/** The library's signer over a lane: it has the receipt as soon as it has the hash. */
function signerOf({ readContract, getCode }: Reads, relayer: Address, send: Send): FacilitatorEvmSigner {
  let outcome: RelayOutcome | undefined
  return {
    getAddresses: () => [relayer],
    readContract,
    getCode,
    // The scheme verifies by getCode and isValidSignature; what it does not use is refused, not half done.
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

/** The reads of a client, and whether one of them did not reach a node: the library takes that for a no. */
function observed(rpc: RpcTransport): { client: Reads; wasUnreachable: () => boolean } {
  let unreachable = false
  const client = createViemClient({
    ...rpc,
    call: request =>
      rpc.call(request).catch(error => {
        unreachable = true
        throw error
      }),
  })
  return {
    client: {
      readContract: args => readContract(client, args as never),
      // The library starts this read and may leave it: it must not fail alone.
      getCode: args => getCode(client, args).catch(() => undefined),
    },
    wasUnreachable: () => unreachable,
  }
}
