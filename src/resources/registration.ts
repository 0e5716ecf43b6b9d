import { hasVisible } from '@agent-trading-service/protocol/unseen-text'
import { z } from 'zod'
import { paymentRequirements } from './error-body.ts'
import {
  address,
  addressOut,
  asOf,
  deadline,
  deadlineOut,
  digits,
  hashOut,
  plainText,
  signature,
  uint,
  unixSeconds,
  vaultReference,
} from './primitives.ts'
import { eip712Info, paymentAuthorization, paymentTypedData, signableFields, typedDataSchemas } from './typed-data.ts'

/** Text of limited length. The limit also holds in bytes, because the registry counts bytes. */
const text = (max: number) =>
  plainText
    .min(1)
    .max(max)
    .refine(value => value.isWellFormed(), 'must be well-formed Unicode')
    .refine(value => new TextEncoder().encode(value).length <= max, `must be at most ${max} bytes in UTF-8`)

export const registrationFields = {
  vault: vaultReference.meta({
    description: 'The vault the agent will trade in: slug or contract address',
    example: 'genesis',
  }),
  name: text(128).refine(hasVisible, 'must have a visible character').meta({
    description: 'Name of the agent, without control characters',
    example: 'momentum-7',
  }),
  metadataURI: text(2048).meta({
    description: "URI of the agent's own description; never fetched",
    example: 'https://agents.example/momentum-7.json',
  }),
  signer: address.describe('Address that registers the agent and signs its trades'),
  linkERC8004: z.boolean().describe('Whether to link an ERC-8004 identity').default(false),
  erc8004AgentId: uint.describe('ERC-8004 token id; "0" if not linking').default(0n),
}

/** The owner of an agent, if it is not the signer. All three fields or none. */
export const ownerFields = {
  owner: address.optional().describe('Address that is to own the agent, if not the signer'),
  ownerNonce: uint.optional().describe('Only with owner: ownerConsent.nonce of the quote'),
  ownerSignature: signature.optional().describe('Only with owner: its signature of OwnAgent'),
}

export const registrationBody = z.object({ ...registrationFields, ...ownerFields, deadline, signature })

export const registrationQuote = z
  .object({
    registrationFee: z.object({
      amount: digits('Fee in base units of the fee asset'),
      assetSymbol: z.string(),
      tokenAddress: addressOut,
      decimals: z.int(),
      displayUsd: z.string().meta({ description: 'The fee in decimal US dollars', example: '1.00' }),
    }),
    x402: z.object({
      enabled: z.boolean().describe('Whether the fee is paid over HTTP 402'),
      network: z.string().nullable().describe('CAIP-2 network of the payment'),
      payTo: z.string().nullable(),
      facilitatorUrl: z.string().nullable(),
      httpRoute: z.string().meta({ example: 'POST /agents/register' }),
      requirements: paymentRequirements
        .optional()
        .describe('What to pay, so that the first request can already carry the payment; absent if nothing is due'),
      authorization: z
        .object({
          typedData: paymentTypedData,
          digest: z.string().describe('EIP-712 digest of typedData'),
          payment: z
            .object({
              x402Version: z.int(),
              accepted: paymentRequirements,
              payload: z.object({ authorization: paymentAuthorization }),
            })
            .meta({
              description:
                'Add the signature of typedData as `payload.signature`: the base64 of that JSON is the header PAYMENT-SIGNATURE',
              'x-passed-on': true,
            }),
        })
        .optional()
        .describe('With `payer` and every value of the registration: what the payer signs'),
    }),
    eip712: eip712Info.extend({
      selfRegisterTypehash: z.string().describe('32-byte hex'),
    }),
    agentRegistry: addressOut.describe('Verifying contract of the signature'),
    signerNonce: digits('The nonce to sign; null without `signer`').nullable(),
    registryPaused: z.boolean(),
    warnings: z.array(z.string()).optional().describe('Why the registration would be refused, or cannot be signed yet'),
    serverTime: unixSeconds('The present time'),
    suggestedDeadline: deadlineOut('A deadline ten minutes ahead'),
    ...signableFields(typedDataSchemas.SelfRegister, { id: 'RegistrationBody', submission: registrationBody }),
    ownerConsent: z
      .object({
        owner: addressOut,
        nonce: z.string(),
        typedData: typedDataSchemas.OwnAgent.optional(),
        digest: z.string().optional(),
      })
      .optional()
      .describe('With `owner`: the OwnAgent message for `ownerSignature`'),
    asOf,
  })
  .meta({ id: 'RegistrationQuote' })

export const registration = z
  .object({
    agentId: digits("Agent id, from the transaction's event"),
    transactionHash: hashOut,
    transaction: z
      .object({ to: addressOut, data: z.string(), chainId: z.int(), description: z.string() })
      .describe('The relayed call, which the signer could also send directly'),
    message: z.string(),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'Registration' })
