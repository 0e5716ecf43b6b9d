import { type Address, formatUnits, zeroAddress } from 'viem'
import { z } from 'zod'
import type { Chain } from '../chain/configured-chain.ts'
import { addressOfReference } from '../chain/find-vault.ts'
import { getConsentTerms } from '../chain/read-owner-terms.ts'
import { getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { nowAt } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { quoteDeadline } from '../intents/deadline.ts'
import { submissionWarnings } from '../intents/intake.ts'
import { relayRegistration } from '../intents/registration.ts'
import { registrationWarnings } from '../intents/registration-warnings.ts'
import { nothingToSign } from '../intents/trade-quote.ts'
import { address, deadline, presentAsOf, USDC_DECIMALS } from '../resources/primitives.ts'
import {
  ownerFields,
  registration,
  registrationBody,
  registrationFields,
  registrationQuote,
} from '../resources/registration.ts'
import { presentEip712, presentTypedData } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'

export const getRegistrationQuote = defineOperation(
  {
    id: 'getRegistrationQuote',
    tool: {
      name: 'svc_get_agent_registration_quote',
      description:
        'First step of a registration: returns fee, nonce, typedData and the body to send. Pass signer, vault (slug or address), name and metadataURI, then sign typedData (EIP-712) and call svc_register_agent. Example: {"signer":"0x…","vault":"genesis","name":"momentum-7","metadataURI":"https://agents.example/7.json"}',
    },
    path: '/agents/register/quote',
    tag: 'Agents',
    summary: 'Get a quote for registering an agent',
    description:
      'Returns the fee, the signing domain and, with `signer`, the nonce of a SelfRegister message. With `signer`, `vault`, `name` and `metadataURI`, also returns the typed data to sign, its digest and the body to post. With `payer`, `x402.authorization` is the payment that it signs. With `owner`, also returns the OwnAgent message that the owner signs: then the key that trades never owns the agent.',
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
      payer: address.optional().describe('Who pays: adds what it signs'),
      deadline: deadline.optional(),
    }),
    output: registrationQuote,
  },
  async (
    context: Context,
    { signer, vault: reference, name, metadataURI, linkERC8004, erc8004AgentId, owner, payer, ...requested },
  ) => {
    const { chain, payments, config } = context
    if (owner !== undefined && owner === signer) throw refuse('OWNER_IS_SIGNER', { owner })
    const vault = reference === undefined ? undefined : await addressOfReference(chain, reference)
    const plan = {
      signer,
      payer: payer ?? signer,
      vault,
      asset: feeAssetOf(chain, config),
      erc8004AgentId: linkERC8004 ? erc8004AgentId : undefined,
    }
    const [{ block, terms, prospects }, consent] = await Promise.all([
      getRegistrationTerms(chain, plan),
      owner && getConsentTerms(chain, owner),
    ])
    const { fee, domain, signerNonce } = terms
    const due = payments?.dueOf(fee, nowAt(block))
    const deadline = quoteDeadline(requested.deadline, block)
    const message = signer &&
      signerNonce !== undefined &&
      vault &&
      name &&
      metadataURI && { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, nonce: signerNonce, deadline }
    const signable = message && presentTypedData(domain, 'SelfRegister', message)
    const missing = Object.entries({ signer, vault, name, metadataURI }).flatMap(([field, value]) =>
      value === undefined ? [field] : [],
    )
    const warnings = [
      ...(await submissionWarnings(context, 'SelfRegister', { as: 'registrant', account: signer ?? zeroAddress })),
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
        ...(due && payer && signable && { authorization: payments?.paymentBy(payer, due, signable.digest) }),
      },
      eip712: {
        ...presentEip712(domain, 'SelfRegister'),
        selfRegisterTypehash: terms.selfRegisterTypehash,
      },
      agentRegistry: chain.contracts.AgentRegistry,
      signerNonce: signerNonce === undefined ? null : `${signerNonce}`,
      registryPaused: terms.paused,
      ...(warnings.length > 0 && { warnings }),
      serverTime: `${nowAt(block)}`,
      suggestedDeadline: `${deadline}`,
      ...(message && {
        ...signable,
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
      asOf: presentAsOf(block, consent?.block),
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
    paid: true,
    status: 201,
    replay: 200,
    output: registration,
    errors: [404, 409, 502, 503],
  },
  async (context: Context, body, call) => relayRegistration(context, call, body),
)

/** Returns the token that the fee is paid in, if that is on this chain and can be read. */
const feeAssetOf = ({ id, contracts }: Chain, { payment }: Config): Address | undefined =>
  typeof payment === 'object' && payment.network === `eip155:${id}` ? (payment.asset ?? contracts.USDC) : undefined
