import { agentIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import { digestOf, type Message } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeFunctionData, formatUnits, type Hex } from 'viem'
import { z } from 'zod'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Call } from '../call.ts'
import type { Block } from '../chain/block-type.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { getConsentTerms, readOwnerControls } from '../chain/read-owner-terms.ts'
import { getRegistrationTerms, type RegistrationTerms } from '../chain/read-registration-terms.ts'
import { simulate } from '../chain/simulate.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { refusalAtHead, revertContext } from '../executor/failed-intent-refusals.ts'
import type { RelayRequest } from '../executor/relay-types.ts'
import { address, deadline, presentAsOf } from '../resources/primitives.ts'
import {
  ownerFields,
  registration,
  registrationBody,
  registrationFields,
  registrationQuote,
} from '../resources/registration.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { USDC_DECIMALS } from '../resources/usdc-amount.ts'
import { deadlineRefusal, deadlineWarnings, quoteDeadline } from './deadline.ts'
import { defineOperation, OperationReply } from './define-operation.ts'
import { intakeRefusal, intakeWarnings } from './intake-check.ts'
import { nothingToSign } from './quote-response.ts'
import { registrationWarnings } from './registration-warnings.ts'
import { minedOrRefusal, relayInTime, wasAccepted } from './relay-or-refuse.ts'
import { addressOfReference } from './vaults.ts'
import { verifyRegistryMessage } from './verify-registry-message.ts'

export const getRegistrationQuote = defineOperation(
  {
    id: 'getRegistrationQuote',
    tool: {
      name: 'svc_get_agent_registration_quote',
      description:
        'First step of a registration: returns fee, nonce, typedData and the body to send. Pass signer, vault (slug or address), name and metadataURI, then sign typedData (EIP-712) and call svc_register_agent. Example: {"signer":"0x…","vault":"genesis","name":"momentum-7","metadataURI":"https://agents.example/7.json"}',
    },
    method: 'get',
    path: '/agents/register/quote',
    tag: 'Agents',
    summary: 'Get a quote for registering an agent',
    description:
      'Returns the fee, the signing domain and, with `signer`, the nonce of a SelfRegister message. With `signer`, `vault`, `name` and `metadataURI`, also returns the typed data to sign, its digest and the body to post. With `owner`, also returns the OwnAgent message that the owner signs: then the key that trades never owns the agent.',
    query: z.object({
      signer: address.optional(),
      vault: registrationFields.vault.optional(),
      name: registrationFields.name.optional(),
      metadataURI: registrationFields.metadataURI.optional(),
      linkERC8004: z
        .enum(['true', 'false'])
        .transform(value => value === 'true')
        .default(false),
      erc8004AgentId: registrationFields.erc8004AgentId,
      owner: ownerFields.owner,
      deadline: deadline.optional(),
    }),
    cache: 'none',
    status: 200,
    output: registrationQuote,
    errors: [404, 502, 503],
  },
  async (
    context,
    { signer, vault: reference, name, metadataURI, linkERC8004, erc8004AgentId, owner, ...requested },
  ) => {
    const { chain, payments, config } = context
    if (owner !== undefined && owner === signer) throw refuse('OWNER_IS_SIGNER', { owner })
    const vault = reference === undefined ? undefined : await addressOfReference(chain, reference)
    const plan = {
      signer,
      vault,
      asset: feeAssetOf(chain, config),
      erc8004AgentId: linkERC8004 ? erc8004AgentId : undefined,
    }
    const [{ block, terms, prospects }, consent] = await Promise.all([
      getRegistrationTerms(chain, plan),
      owner && getConsentTerms(chain, owner),
    ])
    const { fee, domain, signerNonce } = terms
    const due = payments?.dueOf(fee, block.timestamp)
    const deadline = quoteDeadline(requested.deadline, block)
    const message = signer &&
      signerNonce !== undefined &&
      vault &&
      name &&
      metadataURI && { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, nonce: signerNonce, deadline }
    const missing = Object.entries({ signer, vault, name, metadataURI }).flatMap(([field, value]) =>
      value === undefined ? [field] : [],
    )
    const warnings = [
      ...(await intakeWarnings(context, 'registrations')),
      ...registrationWarnings({ plan, prospects, isPaused: terms.paused, owner: owner ?? signer, due }),
      ...(message ? [] : [nothingToSign(missing)]),
    ]
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
      ...(warnings.length > 0 && { warnings }),
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
          ...(consent && { owner, ownerNonce: `${consent.nonce}` }),
          deadline: `${deadline}`,
        },
      }),
      ...(owner &&
        consent && {
          ownerConsent: {
            owner,
            nonce: `${consent.nonce}`,
            ...(message && presentTypedData(consent.domain, 'OwnAgent', { ...message, nonce: consent.nonce })),
          },
        }),
      asOf: presentAsOf(block),
    }
  },
)

export const registerAgent = defineOperation(
  {
    id: 'registerAgent',
    tool: {
      name: 'svc_register_agent',
      description:
        'Registers an agent. Before: svc_get_agent_registration_quote; send its body with signature. Where x402 is enabled it first returns PAYMENT_REQUIRED: call again with the same input and the payment in _meta["x402/payment"]. Repeating it is safe and never charged twice.',
    },
    method: 'post',
    path: '/agents/register',
    tag: 'Agents',
    summary: 'Register an agent',
    description:
      'Verifies a SelfRegister message signed by `signer` and relays it. The signer owns the agent, unless the body names another `owner` with its signature of OwnAgent. Responds 201 with the new agent id; posting the identical body again responds 200 with the same one. If `x402.enabled` of the quote is true, the fee is paid over x402 (scheme `exact`): a request without payment responds 402 with the requirements; post the identical body again with the payment in the header PAYMENT-SIGNATURE (or X-PAYMENT). The payment is settled only after the registration has passed a simulation, and never charged twice: a repeated body needs no second payment, and the payment of a failed registration pays for the next one of the same signer.',
    body: registrationBody,
    cache: 'none',
    paid: true,
    status: 201,
    replay: 200,
    output: registration,
    errors: [404, 409, 502, 503],
  },
  async (context, { signature, owner, ownerNonce, ownerSignature, ...given }, call) => {
    const { chain, relayer, payments } = context
    const sent = { ...given, vault: await addressOfReference(chain, given.vault) }
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = sent
    if (!linkERC8004 && erc8004AgentId !== 0n)
      throw refuse('INVALID_ERC8004_LINK', { problem: 'linkERC8004 is false and erc8004AgentId is not "0"' })
    const consent = await verifyConsent(chain, sent, { owner, nonce: ownerNonce, signature: ownerSignature })
    const { block, terms } = await getRegistrationTerms(chain, { signer })
    const to = chain.contracts.AgentRegistry
    const data = consent
      ? encodeFunctionData({
          abi: agentRegistryAbi,
          functionName: 'registerOwnedAgent',
          args: [{ ...sent, owner: consent.owner }, deadline, signature, { ...consent, deadline }],
        })
      : encodeFunctionData({
          abi: agentRegistryAbi,
          functionName: 'selfRegisterAgent',
          args: [vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, signature],
        })
    const verified = await verifyRegistryMessage(chain, {
      primaryType: 'SelfRegister',
      domain: terms.domain,
      signer,
      currentNonce: terms.signerNonce ?? 0n,
      messageOf: nonce => ({ ...sent, nonce }),
      signature,
      relay: { kind: 'register', deadline, call: { to, data } },
    })
    const { nonce, nonceRefusal } = verified
    // The signer's message alone does not say who owns the agent.
    const relay = consent ? { ...verified.relay, digest: consent.digest } : verified.relay
    const record = await relayer.find(relay.group, relay.digest)
    const isReplay = record !== undefined && record.state !== 'rejected'
    const isExecuted = record?.state === 'mined' || record?.state === 'final'
    const invalid =
      deadlineRefusal(deadline, block) ??
      (terms.paused ? refuse('REGISTRATION_PAUSED') : undefined) ??
      nonceRefusal ??
      (await intakeRefusal(context, 'registrations'))
    if (invalid && !isReplay) throw invalid
    // Anybody can make up a signer, so its signature raises no limit.
    if (!isReplay) await call.client?.countSigner(signer)

    const receipt = isExecuted
      ? await payments?.receiptOf(signer, relay.digest)
      : await collectFee(context, call, { terms, block }, { relay, signer, nonce })
    call.client?.leave()
    const mined = await relayInTime(context, call, relayer, relay)
      .then(async outcome => {
        if (receipt) await payments?.conclude(signer, relay.digest, outcome)
        return minedOrRefusal(relay, outcome, revert => refusalAtHead(chain, revert))
      })
      .catch(error => {
        if (receipt && error instanceof Refusal) error.payment = { response: receipt }
        throw error
      })
    const agentId = agentIdIn(to, mined.logs)
    if (agentId === undefined) throw new Error('The receipt of a mined registration has no AgentRegistered event')
    const response = {
      agentId: `${agentId}`,
      transactionHash: mined.hash,
      transaction: {
        to,
        data,
        chainId: chain.id,
        description: `${consent ? 'registerOwnedAgent' : 'selfRegisterAgent'} on the agent registry`,
      },
      message: `Agent ${agentId} is registered.`,
      ...deadlineWarnings(deadline, block),
    }
    return new OperationReply(response, { isReplay, payment: receipt && { response: receipt } })
  },
)

/** Returns the token that the fee is paid in, if that is on this chain and can be read. */
const feeAssetOf = ({ id, contracts }: Chain, { payment }: Config): Address | undefined =>
  typeof payment === 'object' && payment.network === `eip155:${id}` ? (payment.asset ?? contracts.USDC) : undefined

type GivenConsent = { owner: Address | undefined; nonce: bigint | undefined; signature: Hex | undefined }

/**
 * Verifies that the owner, if the body names one, consents to the registration. Throws INVALID_REQUEST, OWNER_IS_SIGNER,
 * OWNER_CONTROLS_NOT_SET, INVALID_SIGNATURE.
 */
async function verifyConsent(
  chain: Chain,
  sent: Message & { signer: Address },
  { owner, nonce, signature }: GivenConsent,
) {
  if (owner === undefined && nonce === undefined && signature === undefined) return undefined
  if (owner === undefined || nonce === undefined || signature === undefined)
    throw refuse('INVALID_REQUEST', { problem: 'send owner, ownerNonce and ownerSignature together, or none of them' })
  if (owner === sent.signer) throw refuse('OWNER_IS_SIGNER', { owner })
  const domain = await readOwnerControls(chain)
  if (domain === undefined) throw refuse('OWNER_CONTROLS_NOT_SET')
  const message = { ...sent, nonce }
  await verifySignature(chain, owner, { domain, primaryType: 'OwnAgent', message }, signature)
  return { owner, nonce, signature, digest: digestOf(domain, 'OwnAgent', message) }
}

/**
 * Collects the registration fee, after simulating the registration, and returns the x402 receipt. Returns undefined if
 * no fee is due. Throws the contract error of the simulation, or the refusal of the payment.
 */
async function collectFee(
  { chain, relayer, payments }: Context,
  { payment, submission }: Call,
  { terms, block }: { terms: RegistrationTerms; block: Block },
  { relay, signer, nonce }: { relay: RelayRequest; signer: Address; nonce: bigint },
) {
  const due = payments?.dueOf(terms.fee, block.timestamp)
  if (payments === undefined || due === undefined) return undefined
  const revert = await simulate(chain, relayer.address, relay.call)
  // A concurrent request with the identical body may have executed it, which makes the simulation fail.
  if (revert && !(await wasAccepted(relayer, relay)))
    throw await refusalAtHead(chain, { data: revert.data, context: revertContext(relay) })
  return payments.take({ signer, digest: relay.digest, nonce }, due, { payment, respondBy: submission?.respondBy })
}
