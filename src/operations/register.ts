import { type Address, encodeFunctionData, formatUnits, type Hex } from 'viem'
import { z } from 'zod'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { getRegistrationTerms, type RegistrationTerms } from '../chain/agents.ts'
import type { Block, Chain } from '../chain/chain.ts'
import { simulate } from '../chain/simulate.ts'
import { acceptedByAccount, recover, verifySignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { Refusal } from '../errors/refusal.ts'
import type { RelayRequest } from '../executor/intent.ts'
import { refusalOfRevert } from '../protocol/contract-errors.ts'
import { agentIdIn } from '../protocol/receipt-events.ts'
import { digestOf } from '../protocol/typed-data.ts'
import { presentEip712, presentTypedData, USDC_DECIMALS } from '../resources/intent.ts'
import { address, deadline } from '../resources/primitives.ts'
import { registration, registrationBody, registrationFields, registrationQuote } from '../resources/registration.ts'
import { defineOperation, Reply } from './define-operation.ts'
import { presentBlock } from './present-quote.ts'
import { deadlineRefusal, deadlineWarnings, isKnown, mine } from './relay-intent.ts'

const QUOTED_DEADLINE_SECONDS = 600n

export const getRegistrationQuote = defineOperation(
  {
    id: 'getRegistrationQuote',
    tool: 'svc_get_agent_registration_quote',
    method: 'get',
    path: '/agents/register/quote',
    tag: 'Agents',
    summary: 'Quote for registering an agent',
    description:
      'The fee, the signing domain and, with `signer`, the nonce of a SelfRegister message. With `signer`, `vault`, `name` and `metadataURI` it also answers the typed data to sign, its digest and the body to post.',
    query: z.object({
      signer: address.optional(),
      vault: address.optional(),
      name: registrationFields.name.optional(),
      metadataURI: registrationFields.metadataURI.optional(),
      linkERC8004: z
        .enum(['true', 'false'])
        .transform(value => value === 'true')
        .default(false),
      erc8004AgentId: registrationFields.erc8004AgentId,
      deadline: deadline.optional(),
    }),
    status: 200,
    output: registrationQuote,
    errors: [400, 500, 502],
  },
  async ({ chain, payments, config }, { signer, vault, name, metadataURI, linkERC8004, erc8004AgentId, ...asked }) => {
    const { block, terms } = await getRegistrationTerms(chain, signer)
    const { fee, domain, signerNonce } = terms
    const due = payments?.dueOf(fee, block.timestamp)
    const deadline = asked.deadline ?? block.timestamp + QUOTED_DEADLINE_SECONDS
    const message = signer &&
      signerNonce !== undefined &&
      vault &&
      name &&
      metadataURI && { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, nonce: signerNonce, deadline }
    return {
      registrationFee: {
        amount: `${fee.amount}`,
        assetSymbol: 'USDC',
        tokenAddress: fee.asset,
        decimals: USDC_DECIMALS,
        displayUsd: formatUnits(fee.amount, USDC_DECIMALS),
      },
      x402: {
        enabled: due !== undefined,
        network: due?.requirements.network ?? null,
        payTo: due?.requirements.payTo ?? null,
        facilitatorUrl: due?.facilitatorUrl ?? (due && config.baseUrl ? `${config.baseUrl}/facilitator` : null),
        httpRoute: 'POST /agents/register',
        ...(due && { requirements: due.requirements }),
      },
      eip712: {
        ...presentEip712(domain, 'SelfRegister'),
        selfRegisterTypehash: terms.selfRegisterTypehash,
      },
      agentRegistry: chain.contracts.AgentRegistry,
      signerNonce: signerNonce === undefined ? null : `${signerNonce}`,
      registryPaused: terms.paused,
      serverTime: `${block.timestamp}`,
      suggestedDeadline: `${deadline}`,
      ...(message && {
        ...presentTypedData(domain, 'SelfRegister', message),
        body: {
          vault,
          name,
          metadataURI,
          signer,
          linkERC8004,
          erc8004AgentId: `${erc8004AgentId}`,
          deadline: `${deadline}`,
        },
      }),
      asOf: presentBlock(block),
    }
  },
)

export const registerAgent = defineOperation(
  {
    id: 'registerAgent',
    tool: 'svc_register_agent',
    method: 'post',
    path: '/agents/register',
    tag: 'Agents',
    summary: 'Register an agent',
    description:
      'Verifies a SelfRegister message of the signer and relays it. 201 with the new agent id; the identical signed body again answers 200 with the same. Where the quote says `x402.enabled`, the fee is paid over x402 (scheme `exact`): without a payment the answer is 402 with the requirements, and the identical body with the payment in the header PAYMENT-SIGNATURE (or X-PAYMENT) is verified, settled and relayed. Nothing is charged before the registration is sure to be accepted, and never twice: a repeated body needs no second payment, and a payment whose registration failed pays for the next one of the same signer.',
    body: registrationBody,
    status: 201,
    output: registration,
    errors: [400, 402, 404, 409, 500, 502, 503],
  },
  async (context, { signature, ...sent }) => {
    const { chain, relayer, payments } = context
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = sent
    if (!linkERC8004 && erc8004AgentId !== 0n)
      throw refuse('INVALID_ERC8004_LINK', { problem: 'linkERC8004 is false and erc8004AgentId is not "0"' })
    const { block, terms } = await getRegistrationTerms(chain, signer)
    const to = chain.contracts.AgentRegistry
    const data = encodeFunctionData({
      abi: agentRegistryAbi,
      functionName: 'selfRegisterAgent',
      args: [vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, signature],
    })
    const relayOf = (nonce: bigint): RelayRequest => ({
      digest: digestOf(terms.domain, 'SelfRegister', { ...sent, nonce }),
      kind: 'register',
      group: `signer:${signer}`,
      groupNonce: `${nonce}`,
      deadline,
      call: { to, data },
    })
    const current = terms.signerNonce ?? 0n
    const nonce = (await signedNonce(chain, current, signer, signature, nonce => relayOf(nonce).digest)) ?? current
    const relay = relayOf(nonce)
    if (nonce === current) {
      const message = { ...sent, nonce }
      await verifySignature(chain, signer, { domain: terms.domain, primaryType: 'SelfRegister', message }, signature)
    }
    const record = await relayer.find(relay.group, relay.digest)
    const known = record !== undefined && record.state !== 'rejected'
    const executed = record?.state === 'mined' || record?.state === 'final'
    const refused =
      deadlineRefusal(deadline, block) ??
      (terms.paused ? refuse('REGISTRATION_PAUSED') : undefined) ??
      (nonce === current ? undefined : refuse('INVALID_NONCE', { given: nonce, expected: current }))
    if (refused && !known) throw refused

    const paid = executed
      ? await payments?.receiptOf(signer, relay.digest)
      : await takeFee(context, { terms, block }, { relay, signer, nonce })
    const mined = await mine(paid && payments ? payments.relaying(relayer, signer) : relayer, relay).catch(error => {
      if (paid && error instanceof Refusal) error.payment = { response: paid }
      throw error
    })
    const agentId = agentIdIn(to, mined.logs)
    if (agentId === undefined) throw new Error('A mined registration has no AgentRegistered event')
    const answer = {
      agentId: `${agentId}`,
      transactionHash: mined.hash,
      transaction: { to, data, chainId: chain.id, description: 'selfRegisterAgent on the agent registry' },
      message: `Agent ${agentId} is registered.`,
      ...deadlineWarnings(deadline, block),
    }
    return new Reply(known ? 200 : 201, answer, paid && { response: paid })
  },
)

/**
 * Takes the registration fee where it is paid over x402, and not before the chain would accept the registration.
 * Answers the receipt, or undefined where nothing is due.
 */
async function takeFee(
  { chain, relayer, payments, payment }: Context,
  { terms, block }: { terms: RegistrationTerms; block: Block },
  { relay, signer, nonce }: { relay: RelayRequest; signer: Address; nonce: bigint },
) {
  const due = payments?.dueOf(terms.fee, block.timestamp)
  if (payments === undefined || due === undefined) return undefined
  const refused = await simulate(chain, relayer.address, relay.call)
  // The identical body, posted meanwhile by somebody else, can be what stands in its way.
  if (refused && !(await isKnown(relayer, relay))) throw refusalOfRevert(refused.data)
  return payments.take({ signer, digest: relay.digest, nonce }, due, payment)
}

const REMEMBERED_NONCES = 8n

/**
 * The nonce that was signed: the body carries none, and a body that was relayed before was signed with an earlier one.
 * A key's signature is held against the last nonces without a call, an account's (ERC-1271) with one. Undefined when
 * the signature is over none of them.
 */
export async function signedNonce(
  chain: Chain,
  current: bigint,
  signer: Address,
  signature: Hex,
  digestOf: (nonce: bigint) => Hex,
) {
  const count = Number(current < REMEMBERED_NONCES ? current + 1n : REMEMBERED_NONCES)
  const nonces = Array.from({ length: count }, (_, back) => current - BigInt(back))
  for (const nonce of nonces) {
    const { address } = await recover(digestOf(nonce), signature)
    if (address === signer) return nonce
    if (address === null) break
  }
  const earlier = nonces.slice(1)
  if (earlier.length === 0) return undefined
  const accepted = await acceptedByAccount(chain, signer, earlier.map(digestOf), signature)
  return earlier[accepted.indexOf(true)]
}
