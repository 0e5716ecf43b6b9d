import { parseUnits } from 'viem'
import { z } from 'zod'
import type { Terms } from '../chain/trading-terms.ts'
import { refuse, remedyOf } from '../errors/catalogue.ts'
import type { Check } from '../protocol/checks.ts'
import type { ExitBounds } from '../protocol/exit-ladder.ts'
import {
  type Domain,
  digestOf,
  type ExitRule,
  type Message,
  type PrimaryType,
  signingTypes,
} from '../protocol/typed-data.ts'
import { agentPosition, exitRule, presentExitRule } from './position.ts'
import {
  addressOut,
  amount,
  asOf,
  bps,
  deadline,
  decimal,
  digits,
  hashOut,
  nonce,
  positionId,
  signature,
  uint,
  unixSeconds,
  usdc,
} from './primitives.ts'
import { market } from './token.ts'

/** USDC has 6 decimals on every deployment of the protocol. */
export const USDC_DECIMALS = 6

/** Human USDC to base units. Throws INVALID_AMOUNT for zero, too many decimals or above uint256; never rounds. */
export function parseUsdc(given: string): bigint {
  const refused = (problem: string) => refuse('INVALID_AMOUNT', { field: 'usdcAmount', given, problem })
  const [, fraction = ''] = given.split('.')
  if (fraction.length > USDC_DECIMALS) throw refused(`USDC has ${USDC_DECIMALS} decimals`)
  const value = parseUnits(given, USDC_DECIMALS)
  if (value === 0n) throw refused('it is zero')
  if (value >= 1n << 256n) throw refused('it is above 2^256')
  return value
}

// --- what a caller sends

/** A rule of a request: the sign of triggerBps says the kind; a triggerType that is sent must agree. */
const exitInput = z
  .strictObject({
    triggerType: z.enum(['StopLoss', 'TakeProfit']).optional(),
    triggerBps: z
      .int()
      .refine(value => value !== 0, 'must not be zero: negative is a StopLoss, positive a TakeProfit')
      .meta({
        description: 'Signed distance from the entry price in basis points: negative StopLoss, positive TakeProfit',
      }),
    exitBps: z.int().min(1).max(10_000).meta({ description: 'Share of the remaining tokens to sell; basis points' }),
  })
  .refine(
    ({ triggerType, triggerBps }) => triggerType === undefined || (triggerType === 'StopLoss') === triggerBps < 0,
    'triggerType contradicts the sign of triggerBps',
  )
  .meta({ id: 'ExitRuleInput' })

export const exits = z
  .array(exitInput)
  .min(1)
  .max(5)
  .meta({
    description: 'The exit ladder in array order, 1 to 5 rules; the last rule exits 10000',
    example: [
      { triggerBps: -800, exitBps: 10000 },
      { triggerBps: 1500, exitBps: 10000 },
    ],
  })
export const toRules = (given: z.output<typeof exits>): ExitRule[] =>
  given.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? 0 : 1,
    triggerBps: BigInt(triggerBps),
    exitBps,
  }))

/** The ladder of a query: JSON as in a body, or `-800:10000,1500:5000`. */
export const exitsQuery = z
  .string()
  .max(1000)
  .transform((text, ctx): ExitRule[] => {
    const result = exits.safeParse(text.trimStart().startsWith('[') ? parseJson(text) : parsePairs(text))
    if (result.success) return toRules(result.data)
    ctx.addIssue({
      code: 'custom',
      message: `must be a ladder such as -800:10000,1500:10000 or its JSON: ${result.error.issues[0]?.message}`,
    })
    return z.NEVER
  })
  .meta({ description: 'Exit ladder as `triggerBps:exitBps` pairs or as JSON', example: '-800:10000,1500:10000' })

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
const parsePairs = (text: string): unknown =>
  text.split(',').map(pair => {
    const [, triggerBps, exitBps] = /^\s*(-?\d{1,9}):(\d{1,9})\s*$/.exec(pair) ?? []
    return { triggerBps: Number(triggerBps), exitBps: Number(exitBps) }
  })

export const slippageBps = z
  .int()
  .min(0)
  .max(10_000)
  .meta({ description: 'Largest shortfall against the oracle value in basis points' })
export const usdcAmount = decimal.meta({ description: 'Notional in human USDC, at most 6 decimals', example: '250' })
export const minTokenOut = uint.meta({
  description: "Entry slippage floor in the token's base units",
  example: '0',
})
export const DEFAULT_SLIPPAGE_BPS = 100

/** The part of a body that every intent shares. */
export const signed = { deadline, nonce, signature }
export const entry = {
  usdcAmount,
  minTokenOut: minTokenOut.default(0n),
  maxSlippageBps: slippageBps.default(DEFAULT_SLIPPAGE_BPS),
}

const intQuery = (min: number, max: number) => z.coerce.number<string | number>().int().min(min).max(max)
/** The optional part of a quote's query: with it, the quote carries the typed data and an estimate. */
export const entryQuery = {
  usdcAmount: usdcAmount.optional(),
  minTokenOut: minTokenOut.default(0n),
  maxSlippageBps: intQuery(0, 10_000).default(DEFAULT_SLIPPAGE_BPS).meta({
    description: 'Largest shortfall against the oracle value in basis points',
  }),
  deadline: deadline.optional(),
}
export const positionQuery = { positionId }
export const exitBpsQuery = intQuery(1, 10_000)
  .optional()
  .meta({ description: 'Share of the remaining tokens to sell in basis points; 10000 closes' })

// --- what the service answers

export const eip712Info = z
  .object({
    domainName: z.string(),
    domainVersion: z.string(),
    chainId: z.int(),
    verifyingContract: addressOut,
    primaryType: z.enum(Object.keys(signingTypes) as [PrimaryType, ...PrimaryType[]]),
    types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))).meta({
      description: 'The EIP-712 type of the primary type, fields in signing order',
    }),
  })
  .meta({ id: 'Eip712Info' })

export const presentEip712 = <P extends PrimaryType>(domain: Domain, primaryType: P) => ({
  domainName: domain.name,
  domainVersion: domain.version,
  chainId: Number(domain.chainId),
  verifyingContract: domain.verifyingContract,
  primaryType,
  types: { [primaryType]: [...signingTypes[primaryType]] },
})

const eip712DomainType = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

export const typedData = z
  .object({
    types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
    domain: z.object({ name: z.string(), version: z.string(), chainId: z.int(), verifyingContract: addressOut }),
    primaryType: z.string(),
    message: z.record(z.string(), z.union([z.string(), z.int(), z.boolean()])),
  })
  .meta({ id: 'TypedData', description: 'Ready for eth_signTypedData_v4' })

/** Typed data ready for `eth_signTypedData_v4`, and its digest. Integers over 16 bits are digit strings. */
export function presentTypedData(domain: Domain, primaryType: PrimaryType, message: Message) {
  return {
    typedData: {
      types: { EIP712Domain: eip712DomainType, [primaryType]: [...signingTypes[primaryType]] },
      domain: {
        name: domain.name,
        version: domain.version,
        chainId: Number(domain.chainId),
        verifyingContract: domain.verifyingContract,
      },
      primaryType,
      message: Object.fromEntries(
        Object.entries(message).map(([name, value]) => [name, typeof value === 'bigint' ? `${value}` : value]),
      ),
    },
    digest: digestOf(domain, primaryType, message),
  }
}

export const check = z
  .object({
    rule: z.string().meta({ example: 'allocationCap' }),
    code: z.string().meta({ description: 'The code that a submission would be refused with' }),
    pass: z.boolean(),
    limit: z.string().nullable().meta({ description: "The rule's limit in its own unit (amounts: USDC base units)" }),
    used: z.string().nullable().meta({
      description:
        'What counts against the limit before the intent; in the unit of the limit, amounts in USDC base units',
    }),
    after: z
      .string()
      .nullable()
      .meta({ description: 'What counts against the limit after the intent; in the unit of the limit' }),
    problem: z.string().optional(),
    ruleIndex: z.int().optional().meta({ description: 'Index of the exit rule at fault' }),
    remedy: z.string().optional(),
  })
  .meta({ id: 'Check', description: 'One rule that the router will apply' })

const figure = (value: bigint | string | undefined) => (value === undefined ? null : `${value}`)
export const presentCheck = ({ rule, code, pass, limit, used, after, problem }: Check): z.input<typeof check> => ({
  rule,
  code,
  pass,
  limit: figure(limit ?? problem?.limit),
  used: figure(used ?? problem?.given),
  after: figure(after),
  ...(problem && { problem: problem.problem }),
  ...(problem?.ruleIndex !== undefined && { ruleIndex: problem.ruleIndex }),
  ...(!pass && { remedy: remedyOf(code) }),
})

export const allocation = z
  .object({
    cap: usdc('Largest cost of all open positions'),
    used: usdc('Cost of the open positions'),
    available: usdc('What may still be invested'),
  })
  .meta({ id: 'Allocation' })
export const presentAllocation = ({ cap, used }: { cap: bigint; used: bigint }) => ({
  cap: `${cap}`,
  used: `${used}`,
  available: `${cap > used ? cap - used : 0n}`,
})

export const exitBounds = z
  .object({
    maxStopLossBps: bps('Deepest stop-loss; 0 is no bound'),
    minTakeProfitBps: bps('Lowest take-profit; 0 is no bound'),
    maxTakeProfitBps: bps('Highest take-profit; 0 is no bound'),
    requireStopLoss: z.boolean(),
    requireTakeProfit: z.boolean(),
  })
  .meta({ id: 'ExitBounds' })
export const presentExitBounds = (bounds: ExitBounds): z.input<typeof exitBounds> => ({
  maxStopLossBps: Number(bounds.maxStopLossBps),
  minTakeProfitBps: Number(bounds.minTakeProfitBps),
  maxTakeProfitBps: Number(bounds.maxTakeProfitBps),
  requireStopLoss: bounds.requireStopLoss,
  requireTakeProfit: bounds.requireTakeProfit,
})

export const accountRiskBounds = z
  .object({
    maxDailyLossBps: bps('Realized loss of a day against the cap that stops new risk; 0 is off'),
    maxDrawdownBps: bps('Drawdown limit; stored, not checked per intent'),
  })
  .meta({ id: 'AccountRiskBounds' })
export const presentRiskBounds = ({ maxDailyLossBps, maxDrawdownBps }: Terms['trackConfig']) => ({
  maxDailyLossBps: Number(maxDailyLossBps),
  maxDrawdownBps: Number(maxDrawdownBps),
})

const estimate = z
  .object({
    source: z.enum(['venue', 'oracle']).meta({ description: 'Quoted by the venue, or computed from the oracle price' }),
    tokenOut: amount("What an open or add would bring; the token's base units").optional(),
    usdcOut: usdc('What a reduce would bring').optional(),
    priceUsd: z.string().meta({ description: 'Oracle price of one whole token' }),
    priceImpactBps: bps('How much less than the oracle value the fill would bring'),
    suggestedMinTokenOut: amount('The estimate less maxSlippageBps').optional(),
    minUsdcOut: usdc('Floor below which a reduce is refused').optional(),
  })
  .meta({ id: 'Estimate' })

/** What every intent quote answers. */
const quoteCommon = {
  agentId: digits('Agent id'),
  signer: addressOut.meta({ description: 'The address that must sign' }),
  nonce: digits('The nonce that the next signed intent must use'),
  eip712: eip712Info,
  tradeRouter: addressOut.meta({ description: 'Verifying contract of the signature' }),
  checks: z.array(check).meta({ description: "Every rule that the router will apply, in the router's order" }),
  bindingRule: z
    .string()
    .nullable()
    .meta({ description: 'The first rule that fails, or the one that bounds the amount' }),
  market: market.optional(),
  warnings: z.array(z.string()).optional().meta({ description: 'What to know though every check passes' }),
  serverTime: unixSeconds("The chain's time"),
  suggestedDeadline: unixSeconds('A deadline ten minutes ahead'),
  typedData: typedData.optional(),
  digest: z.string().optional().meta({ description: 'EIP-712 digest of typedData' }),
  body: z.record(z.string(), z.unknown()).optional().meta({
    description: 'The body to post once the signature of typedData is added as `signature`',
  }),
  asOf,
}

const entryCommon = {
  allocation,
  maxUsdcAmount: usdc('The most that passes every check now'),
  assumed: z
    .object({ minTokenOut: digits("Floor in the token's base units"), maxSlippageBps: bps('Slippage') })
    .meta({ description: 'What is assumed signed where the caller says nothing' }),
  estimate: estimate.optional(),
}

export const tradeIntentQuote = z
  .object({
    ...quoteCommon,
    ...entryCommon,
    vault: addressOut,
    allowedSymbols: z.array(z.string()),
    trackId: z.int(),
    exitBounds,
    accountRiskBounds,
    dailyRealizedPnlUsdc: usdc('Net realized PnL of the day from the router; negative is a loss'),
    defaultExit: z.array(exitRule).meta({ description: 'A ladder that fits the bounds' }),
    token: addressOut.optional().meta({ description: 'Address of the symbol; absent when none was asked for' }),
  })
  .meta({ id: 'TradeIntentQuote' })

export const addIntentQuote = z
  .object({
    ...quoteCommon,
    ...entryCommon,
    positionId: digits('Position id'),
    position: agentPosition.omit({ exitRules: true, pendingRules: true }).meta({ id: 'AgentPositionWithoutLadder' }),
  })
  .meta({ id: 'AddIntentQuote' })

export const reduceIntentQuote = z
  .object({
    ...quoteCommon,
    positionId: digits('Position id'),
    position: agentPosition,
    estimate: estimate.optional(),
  })
  .meta({ id: 'ReduceIntentQuote' })

export const exitLadderQuote = z
  .object({
    ...quoteCommon,
    positionId: digits('Position id'),
    exitBounds,
    currentRules: z.array(exitRule).meta({ description: 'Fired rules first, then the pending ones' }),
    pendingRules: z.array(exitRule),
    nextRuleIndex: z.int(),
  })
  .meta({ id: 'ExitLadderQuote' })

export const intentReceipt = z
  .object({
    agentId: digits('Agent id'),
    positionId: digits("Position id, from the receipt's event"),
    transactionHash: hashOut,
    blockNumber: digits('Block that the transaction was mined in'),
    warnings: z.array(z.string()).optional(),
  })
  .meta({ id: 'IntentReceipt' })

export const presentRules = (rules: readonly ExitRule[]) => rules.map(presentExitRule)
