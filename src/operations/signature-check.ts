import { type Address, type Hex, padHex } from 'viem'
import { privateKeyToAddress, sign } from 'viem/accounts'
import type { z } from 'zod'
import { getLinkTerms, getRegistrationTerms } from '../chain/agents.ts'
import { type Block, must, read } from '../chain/chain.ts'
import { tokenBySymbol } from '../chain/token-symbols.ts'
import { getIntender } from '../chain/trading-terms.ts'
import { judgeSignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import {
  type Domain,
  domainAbi,
  type ExitRule,
  hashExits,
  type Message,
  type PrimaryType,
  toDomain,
} from '../protocol/typed-data.ts'
import { parseUsdc, presentRules, presentTypedData, toRules } from '../resources/intent.ts'
import { parseMessage, VECTOR_EXITS, vectors, verdict, verifyBody } from '../resources/signature-check.ts'
import { submitAddIntent } from './add-intents.ts'
import { defineOperation } from './define-operation.ts'
import { linkERC8004 } from './erc8004-link.ts'
import { submitExitLadderIntent } from './exit-ladder-intents.ts'
import { submitReduceIntent } from './reduce-intents.ts'
import { registerAgent } from './register.ts'
import { deadlineRefusal } from './relay-intent.ts'
import { submitTradeIntent } from './trade-intents.ts'

type Sent = z.output<typeof verifyBody>
/** What the chain says of the message: its domain, who must sign it, and the nonce that is due. */
type Facts = { block: Block; domain: Domain; signer: Address; nonce: bigint; vault?: Address }

export const verifySignedMessage = defineOperation(
  {
    id: 'verifySignature',
    method: 'post',
    path: '/signing/verify',
    tag: 'Signing',
    summary: 'Explain a signature',
    description:
      'Says whether a signature is valid for a message or for a body as it would be posted, and if not, which common mistake was made. Nothing is sent and no nonce is used.',
    body: verifyBody,
    status: 200,
    output: verdict,
    errors: [400, 404, 500, 502, 503],
  },
  async (context, sent) => {
    const { primaryType, signature } = sent
    const { message, exits, facts } = sent.intent ? await fromIntent(context, sent) : await fromMessage(context, sent)
    const signer = sent.signer ?? facts.signer
    const signed = { domain: facts.domain, primaryType, message, exits }
    const { isValid, ...judgement } = await judgeSignature(context.chain, signer, signed, signature)
    return {
      valid: isValid,
      primaryType,
      signer,
      ...judgement,
      warnings: warningsOf(message, facts),
      typedData: presentTypedData(facts.domain, primaryType, message).typedData,
    }
  },
)

/** The message that was sent as it is. */
async function fromMessage(context: Context, { primaryType, message: given, exits: sentExits }: Sent) {
  if (given === undefined) throw refuse('INVALID_REQUEST', { problem: 'send message, or intent with agentId' })
  const exits = sentExits && toRules(sentExits)
  const withHash = exits && given.exitsHash === undefined ? { ...given, exitsHash: hashExits(exits) } : given
  const message = parseMessage(primaryType, withHash)
  const facts = await factsOf(context, primaryType, {
    agentId: message.agentId as bigint,
    signer: message.signer as Address,
  })
  return { message, exits, facts }
}

/** The message that a body would be verified against if it were posted. */
async function fromIntent(context: Context, { primaryType, intent, agentId, signature }: Sent) {
  const { parse, complete } = posted[primaryType]
  const { signature: _, ...body } = parse({
    ...intent,
    ...(agentId !== undefined && { agentId: `${agentId}` }),
    signature,
  })
  const facts = await factsOf(context, primaryType, body as { agentId: bigint; signer: Address })
  const exits = 'exits' in body ? toRules(body.exits as Parameters<typeof toRules>[0]) : undefined
  const message = await complete({ context, body, facts, exitsHash: exits && hashExits(exits) })
  return { message, exits, facts }
}

type Body = Record<string, unknown>
type Posted = {
  /** What the operation that takes the body makes of it. Throws INVALID_REQUEST. */
  parse: (given: Body) => Body
  complete: (given: {
    context: Context
    body: Body
    facts: Facts
    exitsHash: Hex | undefined
  }) => Message | Promise<Message>
}

/** How the body of each operation becomes the message that its signature is over. */
const posted: Record<PrimaryType, Posted> = {
  SelfRegister: {
    parse: registerAgent.parse,
    complete: ({ body, facts: { nonce } }) => ({ ...(body as Message), nonce }),
  },
  LinkERC8004: {
    parse: linkERC8004.parse,
    complete: ({ body, facts: { nonce } }) => ({ ...(body as Message), nonce }),
  },
  OpenPosition: {
    parse: submitTradeIntent.parse,
    complete: async ({ context, body: { symbol, exits: _, usdcAmount, ...rest }, facts: { vault }, exitsHash }) => {
      const token = await tokenBySymbol(context.chain, symbol as string)
      return { ...rest, vault, token, usdcAmount: parseUsdc(usdcAmount as string), exitsHash } as Message
    },
  },
  AddToPosition: {
    parse: submitAddIntent.parse,
    complete: ({ body }) => ({ ...body, usdcAmount: parseUsdc(body.usdcAmount as string) }) as Message,
  },
  ReducePosition: { parse: submitReduceIntent.parse, complete: ({ body }) => body as Message },
  UpdateExitLadder: {
    parse: submitExitLadderIntent.parse,
    complete: ({ body: { exits: _, ...body }, exitsHash }) => ({ ...body, exitsHash }) as Message,
  },
}

async function factsOf(
  { chain, trading }: Pick<Context, 'chain' | 'trading'>,
  primaryType: PrimaryType,
  { agentId, signer }: { agentId: bigint; signer: Address },
): Promise<Facts> {
  if (primaryType === 'SelfRegister') {
    const { block, terms } = await getRegistrationTerms(chain, signer)
    return { block, domain: terms.domain, signer, nonce: terms.signerNonce ?? 0n }
  }
  if (primaryType === 'LinkERC8004') {
    const { block, terms } = await getLinkTerms(chain, agentId)
    return { block, domain: terms.domain, signer: terms.agent.owner, nonce: terms.ownerNonce }
  }
  const { block, domain, agent, nonce } = await getIntender(trading, agentId)
  return { block, domain, signer: agent.signer, nonce, vault: agent.vault }
}

function warningsOf({ nonce, deadline }: Message, facts: Facts): string[] {
  const late = deadlineRefusal(deadline as bigint, facts.block)
  return [
    ...(nonce === facts.nonce ? [] : [`The nonce ${nonce} is not the next nonce ${facts.nonce}.`]),
    ...(late ? [late.body.error] : []),
  ]
}

// A key that everybody knows.
const VECTOR_KEY: Hex = `0x${'01'.repeat(32)}`
const VECTOR_SIGNER = privateKeyToAddress(VECTOR_KEY)

export const getSigningVectors = defineOperation(
  {
    id: 'getSigningVectors',
    method: 'get',
    path: '/signing/vectors',
    tag: 'Signing',
    summary: 'Known signatures to test a signer with',
    description:
      'For each primary type a message on the domain of this deployment, its digest as the contracts compute it, and the signature of a public test key.',
    status: 200,
    output: vectors,
    errors: [500, 502, 503],
  },
  async ({ chain, trading }) => {
    const domainOf = (address: Address) => ({ address, abi: domainAbi, functionName: 'eip712Domain' }) as const
    const { results } = await read(chain, [
      domainOf(chain.contracts.AgentRegistry),
      domainOf(trading.trading.TradeRouter),
    ] as const)
    const registry = toDomain(must(results[0]))
    const router = toDomain(must(results[1]))
    return {
      privateKey: VECTOR_KEY,
      signer: VECTOR_SIGNER,
      vectors: await Promise.all(
        Object.entries(vectorMessages).map(async ([name, { isRouters, message, exits }]) => {
          const primaryType = name as PrimaryType
          const { typedData, digest } = presentTypedData(isRouters ? router : registry, primaryType, message)
          const signature = await sign({ hash: digest, privateKey: VECTOR_KEY, to: 'hex' })
          return { primaryType, typedData, ...(exits && { exits: presentRules(exits) }), digest, signature }
        }),
      ),
    }
  },
)

const anAddress = (digit: string): Address => padHex(`0x${digit}`, { size: 20, dir: 'left' })
const common = { deadline: 1_790_000_000n, nonce: 4n }
const position = { agentId: 1n, positionId: 3n, ...common }

/** One message of each type, the same on every deployment. */
const vectorMessages: Record<PrimaryType, { isRouters: boolean; message: Message; exits?: readonly ExitRule[] }> = {
  SelfRegister: {
    isRouters: false,
    message: {
      vault: anAddress('a1'),
      name: 'momentum-7',
      metadataURI: 'https://agents.example/momentum-7.json',
      signer: VECTOR_SIGNER,
      linkERC8004: false,
      erc8004AgentId: 0n,
      ...common,
    },
  },
  LinkERC8004: { isRouters: false, message: { agentId: 1n, erc8004AgentId: 7n, ...common } },
  OpenPosition: {
    isRouters: true,
    message: {
      agentId: 1n,
      vault: anAddress('a1'),
      token: anAddress('b2'),
      usdcAmount: 250_000_000n,
      minTokenOut: 0n,
      maxSlippageBps: 100,
      exitsHash: hashExits(VECTOR_EXITS),
      ...common,
    },
    exits: VECTOR_EXITS,
  },
  AddToPosition: {
    isRouters: true,
    message: { ...position, usdcAmount: 100_000_000n, minTokenOut: 0n, maxSlippageBps: 100 },
  },
  ReducePosition: { isRouters: true, message: { ...position, exitBps: 5_000 } },
  UpdateExitLadder: {
    isRouters: true,
    message: { ...position, exitsHash: hashExits(VECTOR_EXITS) },
    exits: VECTOR_EXITS,
  },
}
