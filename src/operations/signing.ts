import { clearSigningDescriptor } from '@agent-trading-service/protocol/clear-signing'
import { TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { OrderCondition, OrderSide } from '@agent-trading-service/protocol/order-typed-data'
import { type Domain, hashExits, type Message, type PrimaryType } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, padHex, serializeSignature, zeroAddress } from 'viem'
import { z } from 'zod'
import { getRegistrationTerms } from '../chain/read-registration-terms.ts'
import { readSigningDomains, signingContractOf } from '../chain/signing-domains.ts'
import type { Context } from '../context.ts'
import { signHash } from '../crypto/secp256k1.ts'
import { exitRule, presentExitRule } from '../resources/exit-rule.ts'
import { addressOut } from '../resources/primitives.ts'
import { paymentTypedData, presentEip712, presentTypedData, primaryTypes, typedData } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'

const hex32 = (description: string) =>
  z
    .string()
    .regex(/^0x[0-9a-f]{64}$/)
    .meta({ description, example: `0x${'5f'.repeat(32)}` })

const vectorFields = {
  digest: hex32('The signed digest'),
  signature: z
    .string()
    .regex(/^0x[0-9a-f]{130}$/)
    .describe("The test key's signature of the digest: r, s, v"),
}

const signingVectors = z
  .object({
    privateKey: hex32('A public test key: never send funds to it'),
    signer: addressOut,
    vectors: z.array(
      z
        .object({
          primaryType: z.string(),
          typedData,
          exits: z.array(exitRule).optional().describe('The rules behind exitsHash'),
          ...vectorFields,
        })
        .meta({ id: 'SigningVector' }),
    ),
    payment: z
      .object({ typedData: paymentTypedData, ...vectorFields })
      .optional()
      .describe('The payment of a registration fee (EIP-3009); absent if nothing is due'),
  })
  .meta({ id: 'SigningVectors' })

// A well-known key.
const VECTOR_KEY: Hex = `0x${'01'.repeat(32)}`
const VECTOR_SIGNER: Address = '0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1'

export const getSigningVectors = defineOperation(
  {
    id: 'getSigningVectors',
    path: '/signing/vectors',
    tag: 'Signing',
    summary: 'Get test vectors for a signer',
    description:
      'Returns, for each primary type, a message on the domain of this deployment, its digest as the contracts compute it, and the signature of a public test key.',
    output: signingVectors,
    errors: [502, 503],
  },
  async (context: Context) => {
    const [payment, domains] = await Promise.all([
      paymentVector(context),
      readSigningDomains(context.chain, context.config.serviceHosts[0]),
    ])
    return {
      privateKey: VECTOR_KEY,
      signer: VECTOR_SIGNER,
      vectors: await Promise.all(
        primaryTypes.flatMap(primaryType => {
          const domain = domains[signingContractOf(primaryType)]
          return domain ? [toVector(domain, primaryType)] : []
        }),
      ),
      ...(payment && { payment }),
    }
  },
)

async function toVector(domain: Domain, primaryType: PrimaryType) {
  const { message, exits } = vectorMessages[primaryType]
  const { typedData, digest } = presentTypedData(domain, primaryType, message)
  return {
    primaryType,
    typedData,
    ...(exits && { exits: exits.map(presentExitRule) }),
    digest,
    signature: serializeSignature(signHash(digest, VECTOR_KEY)),
  }
}

/** Returns the payment of a registration fee; undefined if nothing is due. */
async function paymentVector({ chain, payments }: Context) {
  if (payments === undefined) return undefined
  const { terms } = await getRegistrationTerms(chain)
  const due = payments.dueOf(terms.fee, common.deadline)
  if (due === undefined) return undefined
  const { typedData, digest } = payments.paymentBy(
    VECTOR_SIGNER,
    { ...due, chainTime: common.deadline },
    padHex('0xf6', { size: 32 }),
  )
  return { typedData, digest, signature: serializeSignature(signHash(digest, VECTOR_KEY)) }
}

/** One exit rule of each kind. */
const EXAMPLE_EXITS: readonly ExitRule[] = [
  { triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 10_000 },
  { triggerType: TriggerType.TakeProfit, triggerBps: 1500n, exitBps: 10_000 },
]

const exampleAddress = (digits: string): Address => padHex(`0x${digits}`, { size: 20, dir: 'left' })
const common = { deadline: 1_790_000_000n, nonce: 4n }
const salted = { salt: padHex('0xf6', { size: 32 }), deadline: common.deadline }
const position = { agentId: 1n, positionId: 3n, ...common }

/** One message of each type, the same on every deployment. */
const vectorMessages: Record<PrimaryType, { message: Message; exits?: readonly ExitRule[] }> = {
  SelfRegister: {
    message: {
      vault: exampleAddress('a1'),
      name: 'momentum-7',
      metadataURI: 'https://agents.example/momentum-7.json',
      signer: VECTOR_SIGNER,
      linkERC8004: false,
      erc8004AgentId: 0n,
      ...common,
    },
  },
  LinkERC8004: { message: { agentId: 1n, erc8004AgentId: 7n, ...common } },
  OpenPosition: {
    message: {
      agentId: 1n,
      vault: exampleAddress('a1'),
      token: exampleAddress('b2'),
      usdcAmount: 250_000_000n,
      minTokenOut: 0n,
      maxSlippageBps: 100,
      exitsHash: hashExits(EXAMPLE_EXITS),
      ...common,
    },
    exits: EXAMPLE_EXITS,
  },
  AddToPosition: {
    message: { ...position, usdcAmount: 100_000_000n, minTokenOut: 0n, maxSlippageBps: 100 },
  },
  ReducePosition: { message: { ...position, exitBps: 5_000 } },
  UpdateExitLadder: {
    message: { ...position, exitsHash: hashExits(EXAMPLE_EXITS) },
    exits: EXAMPLE_EXITS,
  },
  PlaceOrder: {
    message: {
      agentId: 1n,
      side: OrderSide.Open,
      token: exampleAddress('b2'),
      positionId: 0n,
      usdcAmount: 250_000_000n,
      exitBps: 0,
      exitsHash: hashExits(EXAMPLE_EXITS),
      maxSlippageBps: 100,
      condition: OrderCondition.AtOrBelow,
      price: 12_000_000_000n,
      trailBps: 0,
      validAfter: 0n,
      validUntil: 1_797_776_000n,
      parts: 1,
      interval: 0n,
      key: 0n,
      ...common,
    },
    exits: EXAMPLE_EXITS,
  },
  CancelOrder: { message: { agentId: 1n, orderId: padHex('0xe5', { size: 32 }), ...common } },
  OwnAgent: {
    message: {
      signer: VECTOR_SIGNER,
      vault: exampleAddress('a1'),
      name: 'momentum-7',
      metadataURI: 'https://agents.example/momentum-7.json',
      linkERC8004: false,
      erc8004AgentId: 0n,
      ...common,
    },
  },
  OfferOwnership: { message: { agentId: 1n, newOwner: exampleAddress('c3'), ...common } },
  AcceptOwnership: { message: { agentId: 1n, signer: exampleAddress('d4'), ...common } },
  SetSigner: { message: { agentId: 1n, signer: exampleAddress('d4'), ...common } },
  SetMandate: {
    message: {
      agentId: 1n,
      mode: 0,
      maxTradeUsdc: 500_000_000n,
      maxDailyTurnoverUsdc: 2_000_000_000n,
      maxExposureUsdc: 5_000_000_000n,
      allowedTokens: [exampleAddress('b2'), exampleAddress('b3')],
      validUntil: 0n,
      ...common,
    },
  },
  StopBuying: { message: { agentIds: [1n, 2n], ...common } },
  CloseAll: { message: { agentIds: [1n, 2n], ...common } },
  CancelIntents: { message: { agentId: 1n, untilNonce: 6n, ...common } },
  LockFirstLoss: { message: { agentId: 1n, shares: 7_000_000_000_000_000n, ...common } },
  CreateWebhook: {
    message: { agentId: 1n, url: 'https://agents.example/events', eventTypes: ['trade', 'exit'], ...salted },
  },
  ListWebhooks: { message: { agentId: 1n, deadline: common.deadline } },
  ManageWebhook: { message: { agentId: 1n, webhookId: padHex('0xe5', { size: 32 }), action: 'test', ...salted } },
}

/**
 * Returns the ERC-7730 descriptor of the messages that each contract, or the service, verifies; none where it is not
 * deployed.
 */
export async function readClearSigning({ chain, config }: Context) {
  const domains = await readSigningDomains(chain, config.serviceHosts[0])
  const usdc = chain.contracts.USDC ?? zeroAddress
  const verifiedBy = Map.groupBy(primaryTypes, signingContractOf)
  return new Map(
    [...verifiedBy].flatMap(([contract, types]) => {
      const domain = domains[contract]
      return domain ? [[contract, clearSigningDescriptor(domain, usdc, types)] as const] : []
    }),
  )
}

/** Reads the types and domains of every signed message of this deployment, as JSON for programs and models. */
export async function readSigningReference(context: Context) {
  const domains = await readSigningDomains(context.chain, context.config.serviceHosts[0])
  return {
    how: 'Sign with eth_signTypedData_v4 (65 bytes r, s, v). Every quote returns typedData that is ready to sign.',
    messages: primaryTypes.flatMap(primaryType => {
      const contract = signingContractOf(primaryType)
      const domain = domains[contract]
      return domain ? [{ contract, ...presentEip712(domain, primaryType) }] : []
    }),
    units:
      'usdcAmount is signed in USDC base units (6 decimals); deadline is in Unix seconds; nonce is the one in the quote.',
    exitsHash: {
      recipe: EXITS_HASH_RECIPE,
      example: {
        exits: EXAMPLE_EXITS.map(rule => ({ ...rule, triggerBps: Number(rule.triggerBps) })),
        exitsHash: hashExits(EXAMPLE_EXITS),
      },
    },
  }
}

/** How to compute the `exitsHash` of a message. */
const EXITS_HASH_RECIPE =
  'keccak256(abi.encode(bytes32[] ruleHashes)), where each ruleHash is keccak256(abi.encode(uint8 triggerType, int256 triggerBps, uint16 exitBps)), in array order; triggerType 0 is a StopLoss with negative triggerBps, 1 a TakeProfit with positive triggerBps'
