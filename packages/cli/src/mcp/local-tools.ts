import { hostSchema } from '@agent-trading-service/protocol/host-schema'
import { firstProblem, inputProblems } from '@agent-trading-service/protocol/input-problems'
import { type InputSchema, losslessInput } from '@agent-trading-service/protocol/lossless-input'
import {
  PERCENT_TEXT,
  percentToBps,
  STOP_PERCENT_TEXT,
  stopPercentToBps,
  wholeExits,
} from '@agent-trading-service/protocol/percent'
import { STREAM_EVENT_TYPES } from '@agent-trading-service/protocol/stream-event-types'
import type { Tool } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import type { Plan } from '../trading/plan.ts'
import type { ExitRule, Trader } from '../trading/trader.ts'

const digits = z.string().regex(/^\d+$/, 'must be a string of decimal digits')
/** For what is never zero. */
const positiveDigits = z.string().regex(/^0*[1-9]\d*$/, 'must be a string of decimal digits above zero')
const agentId = positiveDigits
  .optional()
  .meta({ description: 'Agent id; the one of this server if omitted', example: '7' })
const positionId = z
  .string()
  .min(1)
  .max(64)
  .meta({ pattern: '[^0]', description: 'Position id, or the symbol of the open position', example: '3' })
const usdcAmount = z
  .string()
  .regex(/^\d{1,15}(\.\d{1,6})?$/, 'must be human USDC with at most six decimals')
  .meta({ pattern: '[1-9]' })
const exits = z
  .array(z.strictObject({ triggerBps: z.int(), exitBps: z.int().min(1).max(10_000) }))
  .min(1)
  .max(5)
  .meta({
    description: 'Exit ladder: 1 to 5 rules; negative triggerBps is a stop-loss; the last rule must exit 10000',
    example: [{ triggerBps: -800, exitBps: 10_000 }],
  })
/** A distance in percent; parses to basis points. */
const percent = (toBps: typeof percentToBps, accepted: string) =>
  z
    .string()
    .max(16)
    .refine(text => toBps(text) !== undefined, `must be ${accepted}`)
    .meta({ pattern: '[1-9]' })
    .transform(toBps)
const ladder = {
  exits: exits.optional(),
  stopLossPercent: percent(stopPercentToBps, STOP_PERCENT_TEXT)
    .optional()
    .meta({ description: 'Instead of exits: sell everything this far below the entry price; percent', example: '8' }),
  takeProfitPercent: percent(percentToBps, PERCENT_TEXT)
    .optional()
    .meta({ description: 'Sell everything this far above the entry price; percent', example: '15' }),
}

/** Returns the ladder that an input describes, as rules or in percent; undefined if it describes none. */
function ladderOf({
  exits,
  stopLossPercent,
  takeProfitPercent,
}: z.output<z.ZodObject<typeof ladder>>): ExitRule[] | undefined {
  if (stopLossPercent === undefined && takeProfitPercent === undefined) return exits
  if (exits !== undefined)
    throw new Failure('usage', 'exits and stopLossPercent or takeProfitPercent both say where to sell.', {
      code: 'INVALID_REQUEST',
      remedy: 'Pass one of them.',
    })
  return wholeExits(stopLossPercent, takeProfitPercent)
}

const maxSlippageBps = z.int().min(0).max(10_000).optional().describe('Maximum shortfall against the oracle value; bps')

const seconds = (description: string) => digits.optional().meta({ description: `${description}; Unix seconds` })

const note = z.string().max(280).optional().describe('Why, for everybody to read with the trade; not signed')

type LocalTool<I extends z.ZodObject = z.ZodObject> = {
  title: string
  description: string
  input: I
  /**
   * What the tool is there for; `confirm` is listed where the client cannot ask the user, `read` also without `--allow
   * trade`.
   */
  kind: 'sign' | 'confirm' | 'read'
  annotations: Tool['annotations']
} & (
  | { plan: (trader: Trader, input: z.output<I>) => Promise<Plan>; previews?: true }
  | { run: 'whoami' | 'wait' | 'confirm' | 'resume' }
)
const define = <I extends z.ZodObject>(tool: LocalTool<I>) => tool as unknown as LocalTool

const trades = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }
const purchase = z.strictObject({
  symbol: z.string().min(1).max(64).optional().describe('Token to buy; opens a position'),
  positionId: positionId.optional().describe('Position to add to'),
  usdcAmount: usdcAmount.optional().meta({ description: 'Human USDC as a string, such as "250"', example: '250' }),
  maxLossUsdc: usdcAmount.optional().meta({
    description: 'Instead of usdcAmount: the most that the stop-losses of the position may lose, in human USDC',
    example: '20',
  }),
  maxUsdcAmount: usdcAmount.optional().meta({
    description:
      'With maxLossUsdc: the most to buy for, in human USDC. Adding to a position needs it where this server has no node',
    example: '100',
  }),
  ...ladder,
  maxSlippageBps,
  note,
  agentId,
})

const order = z.strictObject({
  type: z
    .enum(['limit', 'breakout', 'stop', 'takeProfit', 'trailingStop', 'twap', 'timeExit'])
    .describe(
      'limit buys at price or lower, breakout at price or higher; stop, takeProfit, trailingStop and timeExit sell; twap buys or sells in parts',
    ),
  symbol: z.string().min(1).max(64).optional().describe('Token to buy as a new position'),
  positionId: positionId.optional().describe('Position to add to or to sell from'),
  usdcAmount: usdcAmount
    .optional()
    .meta({ description: 'What all parts of a purchase spend together, in human USDC', example: '250' }),
  exitBps: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('Sale: share of the position that all parts sell together; 10000 by default'),
  ...ladder,
  maxSlippageBps,
  price: z
    .string()
    .regex(/^\d{1,12}(\.\d{1,8})?$/, 'must be US dollars with at most eight decimals')
    .optional()
    .meta({
      pattern: '[1-9]',
      description: 'Oracle price in US dollars; of a trailingStop, the one that activates it',
      example: '120.5',
    }),
  trailPercent: percent(stopPercentToBps, STOP_PERCENT_TEXT)
    .optional()
    .meta({ description: 'trailingStop: distance from the highest price since placing; percent', example: '5' }),
  validAfter: seconds('Not executed before'),
  validUntil: positiveDigits.optional().meta({
    description:
      'Not executed after, in Unix seconds; by default a purchase waits 90 days, a sale as long as its position is open',
  }),
  parts: z.int().min(1).max(100).optional().meta({ description: 'Number of equal parts', example: 10 }),
  interval: positiveDigits
    .optional()
    .meta({ description: 'Seconds from one part to the next, at least 60', example: '900' }),
  key: digits.optional().meta({ description: 'Replaces the open order with the same key', example: '7' }),
  note,
  agentId,
})

/** The tools of this machine. Those that sign quote, check, ask, sign and submit in one call. */
export const localTools: Record<string, LocalTool> = {
  whoami: define({
    title: 'Show who trades here',
    description:
      'Returns the agent of this server, the key that signs for it, its owner, mandate and allocation, what is left of the local limits, the market session, and whether anything is missing to sign. Start here.',
    input: z.strictObject({ agentId }),
    kind: 'read',
    annotations: { readOnlyHint: true, idempotentHint: true },
    run: 'whoami',
  }),
  wait_for_event: define({
    title: 'Wait for an event of an agent',
    description:
      'Waits for the next event, such as a fired exit, for at most timeoutSeconds; event is null if none came. Pass the lastEventId of the result to the next call and nothing is missed. Example: {"types":["exit","trade"]}',
    input: z.strictObject({
      types: z
        .array(z.enum(STREAM_EVENT_TYPES))
        .min(1)
        .optional()
        .meta({ example: ['exit'] }),
      symbols: z
        .string()
        .optional()
        .meta({ description: 'Also waits for posted prices of these symbols', example: 'NVDA,AAPL' }),
      timeoutSeconds: z.int().min(1).max(60).optional().meta({ description: 'Default: 30', example: 30 }),
      lastEventId: z
        .string()
        .regex(/^\d+-\d+(\.\d+)?$/, 'must be the id of an event')
        .optional()
        .meta({ example: '1234-5' }),
      agentId,
    }),
    kind: 'read',
    annotations: { readOnlyHint: true, idempotentHint: true },
    run: 'wait',
  }),
  trade: define({
    title: 'Open a position, or add to one',
    description:
      'Buys a token, long only: quotes, checks every rule, asks the user, signs locally and submits. With symbol it opens a position, with positionId it adds to one. Returns positionId and transactionHash. Example: {"symbol":"NVDA","usdcAmount":"250","stopLossPercent":"8","takeProfitPercent":"15"}',
    input: purchase,
    kind: 'sign',
    annotations: trades,
    plan: async (trader, input) => trader.planTrade({ ...input, exits: ladderOf(input) }),
  }),
  preview_trade: define({
    title: 'Preview a purchase',
    description:
      'Quotes and checks what trade would sign, signs nothing, and returns previewId with the terms. Show them to the user, then call confirm_trade. Takes the input of trade.',
    input: purchase,
    kind: 'confirm',
    annotations: { readOnlyHint: true, idempotentHint: false, openWorldHint: true },
    previews: true,
    plan: async (trader, input) => trader.planTrade({ ...input, exits: ladderOf(input) }),
  }),
  confirm_trade: define({
    title: 'Sign what was previewed',
    description:
      'Signs and submits exactly what a previewId stands for, once. Call it only after the user agreed to the terms. Buying needs a limits file on this machine. Example: {"previewId":"…"}',
    input: z.strictObject({
      previewId: z.string().min(1).max(64).describe('From preview_trade, close, set_ladder, …'),
    }),
    kind: 'confirm',
    annotations: trades,
    run: 'confirm',
  }),
  close: define({
    title: 'Reduce or close a position',
    description:
      'Sells a position or a share of it: quotes, checks, asks, signs and submits. Example: {"positionId":"NVDA"} closes, {"positionId":"3","exitBps":5000} sells half.',
    input: z.strictObject({
      positionId,
      exitBps: z.int().min(1).max(10_000).optional().describe('Share of the remaining tokens to sell; 10000 closes'),
      note,
      agentId,
    }),
    kind: 'sign',
    annotations: trades,
    plan: (trader, input) => trader.planReduce({ ...input, exitBps: input.exitBps ?? 10_000 }),
  }),
  set_ladder: define({
    title: 'Replace the pending exit rules of a position',
    description:
      'Replaces all pending exit rules, so name also those to keep: quotes, checks, asks, signs and submits. Example: {"positionId":"3","exits":[{"triggerBps":-500,"exitBps":10000}]}',
    input: z.strictObject({ positionId, ...ladder, note, agentId }),
    kind: 'sign',
    annotations: trades,
    plan: async (trader, input) => {
      const exits = ladderOf(input)
      if (exits !== undefined) return trader.planLadder({ ...input, exits })
      throw new Failure('usage', 'There is no ladder to sign.', {
        code: 'LADDER_MISSING',
        remedy: 'Pass exits, stopLossPercent or takeProfitPercent.',
      })
    },
  }),
  place_order: define({
    title: 'Place an order that waits on chain',
    description:
      'Places an order that waits for a price or a time: quotes, checks, asks, signs and submits. Before: svc_get_prices. After: svc_list_orders. Examples: {"type":"limit","symbol":"NVDA","usdcAmount":"250","price":"120","stopLossPercent":"8"}, {"type":"trailingStop","positionId":"3","trailPercent":"5"}, {"type":"twap","positionId":"3","usdcAmount":"1000","parts":10,"interval":"900"}',
    input: order,
    kind: 'sign',
    annotations: trades,
    plan: async (trader, input) => {
      const { trailPercent, stopLossPercent: _, takeProfitPercent: __, validAfter, validUntil, ...terms } = input
      return trader.planOrder({
        ...terms,
        exits: ladderOf(input),
        trailBps: trailPercent,
        validAfter: validAfter === undefined ? undefined : { at: BigInt(validAfter) },
        validUntil: validUntil === undefined ? undefined : { at: BigInt(validUntil) },
      })
    },
  }),
  cancel_order: define({
    title: 'Cancel an open order',
    description:
      'Cancels an open order; no later block executes it. Before: svc_list_orders. Example: {"orderId":"0x…"}',
    input: z.strictObject({
      orderId: z.string().regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters'),
      agentId,
    }),
    kind: 'sign',
    annotations: trades,
    plan: (trader, input) => trader.planCancelOrder(input),
  }),
  register: define({
    title: 'Register an agent',
    description:
      'Registers an agent with the local key as signer and owner, and pays the registration fee over x402. Returns agentId. Example: {"vault":"genesis","name":"momentum-7"}',
    input: z.strictObject({
      vault: z.string().min(1).max(64).describe('Slug or address of the vault'),
      name: z.string().min(1).max(128).describe('Name of the agent'),
      metadataURI: z.string().min(1).max(2048).optional().describe("URI of the agent's own description"),
    }),
    kind: 'sign',
    annotations: { ...trades, destructiveHint: false },
    plan: (trader, input) => trader.planRegistration(input),
  }),
  stop: define({
    title: 'Stop an agent',
    description:
      'As its owner, stops the agent: reduceOnly stops buying, flatten also sells every position. Example: {"action":"flatten"}',
    input: z.strictObject({ action: z.enum(['reduceOnly', 'flatten']), agentId }),
    kind: 'sign',
    annotations: trades,
    plan: (trader, input) => trader.planStop(input),
  }),
  resume: define({
    title: 'Find out what became of signed messages',
    description:
      'Posts each signed message whose outcome is unknown again, unchanged, and returns what became of it: executed, refused or unknown. Signs nothing and never trades or pays twice. Call it after UNKNOWN_OUTCOME or PENDING_MESSAGE, before you repeat anything.',
    input: z.strictObject({
      digest: z
        .string()
        .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hex characters')
        .optional()
        .describe('Digest of one message; all if omitted'),
    }),
    kind: 'sign',
    annotations: { ...trades, destructiveHint: false },
    run: 'resume',
  }),
}

/** Returns the local tools as a client lists them. */
export const listedLocalTools = (kinds: readonly LocalTool['kind'][]): Tool[] =>
  Object.entries(localTools)
    .filter(([, { kind }]) => kinds.includes(kind))
    .map(([name, { title, description, input, annotations }]) => {
      const inputSchema = hostSchema(z.toJSONSchema(input, { io: 'input' })) as Tool['inputSchema']
      return { name, title, description, inputSchema, annotations }
    })

const sentence = (problem: string) => (problem.endsWith('?') ? problem : `${problem}.`)

/**
 * Returns the input of a local tool, converted as the service does. Throws INVALID_REQUEST, in words that name field
 * and value.
 */
export function parseInput(schema: z.ZodObject, given: Record<string, unknown>): Record<string, unknown> {
  const input = losslessInput(given, z.toJSONSchema(schema, { io: 'input' }) as InputSchema)
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const problems = inputProblems(parsed.error.issues, { given: input, fields: schema.shape })
  throw new Failure('usage', `The input is not valid: ${sentence(firstProblem(problems))}`, {
    code: 'INVALID_REQUEST',
    remedy: 'Correct what `problems` names and call the tool again; its input schema has every field.',
    details: { problems },
  })
}
