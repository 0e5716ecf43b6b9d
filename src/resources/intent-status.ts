import { isExecution } from '@agent-trading-service/protocol/agent-book'
import { costBpsOf, executionCost } from '@agent-trading-service/protocol/execution-cost'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import { z } from 'zod'
import type { SignedTrade } from '../chain/signed-trade.ts'
import { describedCalls } from './described-call.ts'
import { exitRule, presentExitRule } from './exit-rule.ts'
import { present } from './present.ts'
import {
  addressOut,
  amount,
  bps,
  deadlineOut,
  digits,
  hashOut,
  humanUsdc,
  noteOut,
  txHash,
  unixSeconds,
  usdc,
} from './primitives.ts'

/** The kinds of relayed calls that a user signed, as opposed to the service's own transactions. */
export const signedKinds = [
  'open',
  'add',
  'reduce',
  'ladder',
  'order',
  'cancelOrder',
  'register',
  'link',
  'owner',
] as const

export const digest = txHash.meta({
  description: 'EIP-712 digest of the signed message, as returned by the quote',
  example: `0x${'4d'.repeat(32)}`,
})

const attempt = z
  .object({
    transactionHash: hashOut,
    nonce: z.int().describe("Nonce of the executor's account"),
    purpose: z
      .enum(['call', 'cancel'])
      .describe('cancel: a zero-value transfer that takes the nonce, so that the call cannot be mined any more'),
    state: z
      .enum(['pending', 'mined', 'reverted', 'replaced'])
      .describe('At most one transaction per nonce is ever mined; the others are replaced'),
    sentAt: unixSeconds("When it was signed and first sent, by the service's clock"),
  })
  .meta({ id: 'Attempt', description: 'A transaction signed for the intent' })

const fill = z
  .object({
    priceUsd: z
      .string()
      .nullable()
      .meta({ description: 'US dollars per whole token, from the two amounts', example: '118.25' }),
    tokenAmount: amount("Tokens bought or sold; the token's base units"),
    usdcAmount: usdc('What was paid or received'),
    costBps: bps(
      "(paid - value) / value of a purchase, (value - received) / value of a sale, truncated towards zero; value is that of the tokens at the oracle's last price at the end of the block. Negative: better than the oracle. Null if that price is unknown",
    ).nullable(),
  })
  .meta({ id: 'Fill' })

const signedTrade = z
  .object({
    symbol: z.string().optional().describe('What to buy as a new position'),
    positionId: digits('The position to change').optional(),
    usdcAmount: usdc('What to pay').optional(),
    minTokenOut: amount("Fewest tokens to accept; the token's base units").optional(),
    maxSlippageBps: bps("Furthest below the oracle's value").optional(),
    exitBps: bps('Share of the remaining tokens to sell').optional(),
    exits: z.array(exitRule).optional().describe('The exit ladder to have from then on'),
  })
  .meta({ id: 'SignedTrade' })

/** Presents what the signer of a trade asked for. */
export const presentSignedTrade = (trade: SignedTrade, symbol: string | undefined): z.input<typeof signedTrade> =>
  present(signedTrade, { ...trade, symbol, exits: trade.exits?.map(presentExitRule) })

/** What an executed trade intent did. It is the same in every response about the intent. */
const tradeResult = {
  fill: fill.nullable().describe('What was bought or sold; null for a new ladder'),
  realizedPnlUsdc: usdc('Sale: proceeds less the released cost basis; otherwise null').nullable(),
  pendingRules: z
    .array(exitRule)
    .nullable()
    .describe('The exit rules that wait after it; null if it left them as they were'),
}

/** Presents what an executed trade intent did. */
export const presentTradeResult = ({
  execution,
  pendingRules,
}: {
  execution: Trade | undefined
  pendingRules: readonly ExitRule[] | undefined
}): z.input<z.ZodObject<typeof tradeResult>> => ({
  fill: execution && isExecution(execution) ? presentFill(execution) : null,
  realizedPnlUsdc: execution?.realizedPnlUsdc === undefined ? null : `${execution.realizedPnlUsdc}`,
  pendingRules: pendingRules?.map(presentExitRule) ?? null,
})

function presentFill(execution: Trade): z.input<typeof fill> {
  const { usdcAmount = 0n, tokenAmount = 0n, priceUsdc, oracleValueUsdc } = execution
  return {
    priceUsd: priceUsdc === undefined ? null : humanUsdc(priceUsdc),
    tokenAmount: `${tokenAmount}`,
    usdcAmount: `${usdcAmount}`,
    costBps:
      oracleValueUsdc === undefined ? null : costBpsOf(executionCost(execution, oracleValueUsdc), oracleValueUsdc),
  }
}

export const intentStatus = z
  .object({
    digest: hashOut.describe('EIP-712 digest'),
    kind: z.enum(signedKinds),
    state: z
      .enum(['received', 'rejected', 'prepared', 'sent', 'mined', 'reverted', 'final', 'dropped'])
      .describe(
        'received: being checked. rejected: nothing was executed, see refusal. prepared: signed and journalled. sent: a node accepted it. mined: executed. final: executed, and too deep for a reorg. reverted: mined without effect, see refusal. dropped: accepted by nodes, but left out by the sequencer; nothing was executed',
      ),
    agentId: digits('For a registration, once mined').optional(),
    signer: addressOut.optional().describe('The account that signed it: a key, or a contract that accepted it'),
    positionId: digits('Once mined').optional(),
    note: noteOut.optional(),
    signed: signedTrade
      .optional()
      .describe('What the signer of a trade asked for; absent if the executor kept no calldata'),
    calls: describedCalls.optional(),
    nonce: digits('The signed nonce'),
    deadline: deadlineOut('The signed deadline, capped at 2^52'),
    transactionHash: hashOut.optional().describe('The attempt that was mined'),
    blockNumber: digits('Block of that transaction').optional(),
    ...z.object(tradeResult).partial().shape,
    attempts: z.array(attempt).describe('Oldest first'),
    refusal: z
      .object({ code: z.string(), error: z.string(), remedy: z.string().optional() })
      .optional()
      .describe('Why nothing was executed; only if rejected, reverted or dropped'),
    createdAt: unixSeconds("When received, by the service's clock"),
    updatedAt: unixSeconds("When its state last changed, by the service's clock"),
  })
  .meta({ id: 'Intent' })
export type IntentStatus = z.input<typeof intentStatus>

/** The response to a relayed trading intent. */
export const intentReceipt = z
  .object({
    agentId: digits('Agent id'),
    positionId: digits("Position id, from the transaction's event"),
    transactionHash: hashOut,
    blockNumber: digits('Block that includes the transaction'),
    ...tradeResult,
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'IntentReceipt' })
