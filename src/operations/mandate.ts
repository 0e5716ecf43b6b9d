import { type Address, isAddress } from 'viem'
import { z } from 'zod'
import type { Chain } from '../chain/configured-chain.ts'
import { tokenBySymbol } from '../chain/token-symbols.ts'
import type { Context } from '../context.ts'
import { quoteOwnerMessage, readAgentControl, relayOwnerMessage } from '../intents/owner-message.ts'
import { signedFields } from '../resources/intent-input.ts'
import { agentControl, mandateFields, mandateQuery, modeNumber } from '../resources/mandate.ts'
import { ownerMessageQuote, ownerMessageReceipt } from '../resources/owner-message.ts'
import { address, deadline, parseUsdc } from '../resources/primitives.ts'
import { typedDataSchemas } from '../resources/typed-data.ts'
import { defineOperation } from './define-operation.ts'
import { ownerQuote } from './owner-operations.ts'

export const getMandate = defineOperation(
  {
    id: 'getMandate',
    tool: {
      name: 'svc_get_mandate',
      description:
        'Who owns an agent, which key signs for it, and what its owner lets it do: mode, limits in USDC base units, tokens, end; null means no limit. Example: {"agentId":"1"}',
    },
    path: '/agents/{agentId}/mandate',
    tag: 'Owners',
    summary: 'Get the mandate of an agent',
    description:
      'Returns who controls the agent and what its owner lets it do. A mandate only narrows: the rules of the track and of the trade policy hold besides it.',
    output: agentControl,
  },
  (context, { agentId }) => readAgentControl(context, agentId),
)

const submission = z.object({ ...mandateFields, ...signedFields })

export const getMandateQuote = defineOperation(
  {
    id: 'getMandateQuote',
    tool: {
      name: 'svc_get_mandate_quote',
      description:
        'First step of setting a mandate. Pass mode and every limit that is to hold: a new mandate replaces the whole old one. The owner signs typedData in a wallet (EIP-712); then call svc_set_mandate. Example: {"agentId":"1","mode":"trade","maxTradeUsdc":"500","allowedTokens":"NVDA,AAPL"}',
    },
    ...ownerQuote,
    path: '/agents/{agentId}/mandate/quote',
    summary: 'Get a quote for setting a mandate',
    description:
      "Returns what the owner's SetMandate message must match. With `mode`, also returns the typed data to sign, its digest and the body to put. A limit that is left out is no limit, because a new mandate replaces the whole old one.",
    query: z.object({ ...mandateQuery, deadline: deadline.optional() }),
    output: ownerMessageQuote('Mandate', typedDataSchemas.SetMandate, submission),
  },
  async (context: Context, { agentId, mode, deadline, validUntil, allowedTokens, ...limits }) => {
    const mandate = mode && (await toMandate(context.chain, { mode, validUntil, allowedTokens, ...limits }))
    return quoteOwnerMessage(context, {
      agentId,
      primaryType: 'SetMandate',
      deadline,
      missing: 'mode',
      message: () =>
        mandate && {
          message: { agentId, ...mandate },
          body: {
            mode,
            ...limits,
            ...(validUntil !== undefined && { validUntil: `${validUntil}` }),
            ...(allowedTokens && { allowedTokens: mandate.allowedTokens }),
          },
        },
      warnings: ({ mandate: { closingSince } }) =>
        mode === 'trade' && closingSince !== 0n
          ? ['All positions of the agent are being closed: this mandate ends that, and what is not sold stays open.']
          : [],
    })
  },
)

export const setMandate = defineOperation(
  {
    id: 'setMandate',
    tool: {
      name: 'svc_set_mandate',
      description:
        "Sets what the owner lets the agent do. Before: svc_get_mandate_quote; send its body with agentId and the owner's signature. Repeating it is safe: it executes once. It never limits reductions, exits and tighter ladders.",
    },
    method: 'put',
    path: '/agents/{agentId}/mandate',
    tag: 'Owners',
    summary: 'Set the mandate of an agent',
    description:
      "Verifies a SetMandate message signed by the agent's owner and relays it. It replaces the whole mandate: a limit that is left out is no limit. A mandate in mode `trade` also ends a close all. The owner pays no gas.",
    body: submission,
    output: ownerMessageReceipt,
    errors: [404, 409, 502, 503],
  },
  async (context: Context, { agentId, nonce, deadline, signature, ...given }, call) =>
    relayOwnerMessage(context, call, {
      agentId,
      nonce,
      deadline,
      signature,
      primaryType: 'SetMandate',
      async content() {
        const mandate = await toMandate(context.chain, given)
        return { message: { agentId, ...mandate }, args: [agentId, mandate] }
      },
    }),
)

/** The fields of a mandate, parsed. */
export type GivenMandate = z.output<z.ZodObject<typeof mandateFields>>

/** Returns a mandate as it is signed. Throws INVALID_AMOUNT, UNKNOWN_SYMBOL. */
export async function toMandate(chain: Chain, { mode, validUntil, allowedTokens = [], ...limits }: GivenMandate) {
  const limit = (given: string | undefined) => (given === undefined ? 0n : parseUsdc(given))
  return {
    mode: modeNumber(mode),
    maxTradeUsdc: limit(limits.maxTradeUsdc),
    maxDailyTurnoverUsdc: limit(limits.maxDailyTurnoverUsdc),
    maxExposureUsdc: limit(limits.maxExposureUsdc),
    allowedTokens: await Promise.all(allowedTokens.map(token => tokenOf(chain, token))),
    validUntil: validUntil ?? 0n,
  }
}

async function tokenOf(chain: Chain, token: string): Promise<Address> {
  return isAddress(token, { strict: false }) ? address.parse(token) : tokenBySymbol(chain, token)
}
