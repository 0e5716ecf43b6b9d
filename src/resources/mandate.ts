import { MandateMode } from '@agent-trading-service/protocol/enums'
import { z } from 'zod'
import type { Block } from '../chain/configured-chain.ts'
import type { OwnerTerms } from '../chain/read-owner-terms.ts'
import { addressOut, amount, asOf, digits, humanAmount, presentAsOf, uint, unixSeconds } from './primitives.ts'

const MODES = { trade: MandateMode.Trade, reduceOnly: MandateMode.ReduceOnly, stopped: MandateMode.Stopped } as const
type ModeName = keyof typeof MODES
const modeNames = Object.keys(MODES) as [ModeName, ...ModeName[]]

/** Returns the number that the contracts have for a mode. */
export const modeNumber = (name: ModeName): number => MODES[name]

/** Returns the name of a mode of the contracts. */
export const modeName = (mode: number): string => modeNames[mode] ?? `unknown(${mode})`

const limitText = (what: string) => `${what}, in human USDC; omit it for no limit`
const modeText =
  '`trade` allows everything within the limits; `reduceOnly` stops buying; `stopped` also keeps stop-losses from being loosened'
const tokensText = 'The tokens that the agent may buy, by symbol or address; omit it for all tokens of the vault'
const validUntilText = 'The last second in which the agent may buy, in Unix seconds; omit it for no end'

/** A symbol or an address. */
const token = z.string().min(1).max(64)

const limits = {
  mode: z.enum(modeNames).meta({ description: modeText, example: 'trade' }),
  // A zero is refused, and never taken for the absence of a limit.
  maxTradeUsdc: humanAmount.optional().meta({ description: limitText('The largest open or add'), example: '500' }),
  maxDailyTurnoverUsdc: humanAmount
    .optional()
    .meta({ description: limitText('The most that the agent buys for in 24 hours'), example: '2000' }),
  maxExposureUsdc: humanAmount
    .optional()
    .meta({ description: limitText('The largest cost of all open positions together'), example: '5000' }),
  validUntil: uint.optional().describe(validUntilText),
}

/** The fields of a mandate in the body of a request. */
export const mandateFields = {
  ...limits,
  allowedTokens: z
    .array(token)
    .min(1)
    .max(64)
    .optional()
    .meta({ description: tokensText, example: ['NVDA', 'AAPL'], 'x-keeps-empty': true }),
}

/** The same in the query of a quote, where the mode may be missing. */
export const mandateQuery = {
  ...limits,
  mode: limits.mode.optional(),
  allowedTokens: z
    .string()
    .max(4096)
    .transform(list => list.split(','))
    .pipe(z.array(token).min(1).max(64))
    .optional()
    .meta({
      description: `${tokensText}; separated by commas`,
      example: 'NVDA,AAPL',
      'x-list': 'comma',
      'x-keeps-empty': true,
    }),
}

const limit = (what: string) => amount(`${what}; USDC base units (6 decimals); null for no limit`).nullable()

export const mandate = z
  .object({
    mode: z.string().meta({ description: modeText, example: 'trade' }),
    maxTradeUsdc: limit('The largest open or add'),
    maxDailyTurnoverUsdc: limit('The most that the agent buys for in 24 hours'),
    maxExposureUsdc: limit('The largest cost of all open positions together'),
    allowedTokens: z
      .array(z.object({ symbol: z.string(), address: addressOut }))
      .nullable()
      .describe('The tokens that the agent may buy; null for all tokens of the vault'),
    validUntil: unixSeconds('The last second in which the agent may buy; null for no end').nullable(),
    version: digits('How many mandates the owner has set; "0" if none, then nothing is limited'),
  })
  .meta({ id: 'Mandate' })

/** Who controls an agent, and what the owner lets it do. */
export const agentControlFields = {
  agentId: digits('Agent id'),
  owner: addressOut.describe('Who signs mandate, stop, transfer, signer and cancel'),
  signer: addressOut.describe('Address whose signatures trade for the agent'),
  pendingOwner: addressOut.nullable().describe('To whom the agent is offered; null if to nobody'),
  ownerNonce: digits("The owner's next nonce"),
  intentNonce: digits("The next nonce of the agent's intents"),
  ownerControls: addressOut.describe('Verifying contract of the messages of owners'),
  mandate,
  closingSince: unixSeconds(
    'Since when all positions are being closed for the owner; null while they are not',
  ).nullable(),
  openPositionIds: z.array(z.string()).describe('The positions that are still open'),
  asOf,
}

export const agentControl = z.object(agentControlFields).meta({ id: 'AgentControl' })

/** Presents who controls an agent. `symbolOf` names the tokens of the mandate. */
export function presentAgentControl(
  block: Block,
  agentId: bigint,
  { agent, contract, ownerNonce, intentNonce, mandate, pendingOwner, openPositionIds }: OwnerTerms,
  symbolOf: (token: `0x${string}`) => string,
): z.input<typeof agentControl> {
  const orNull = (value: bigint) => (value === 0n ? null : `${value}`)
  return {
    agentId: `${agentId}`,
    owner: agent.owner,
    signer: agent.signer,
    pendingOwner: pendingOwner?.address ?? null,
    ownerNonce: `${ownerNonce}`,
    intentNonce: `${intentNonce}`,
    ownerControls: contract,
    mandate: {
      mode: modeName(mandate.mode),
      maxTradeUsdc: orNull(mandate.maxTradeUsdc),
      maxDailyTurnoverUsdc: orNull(mandate.maxDailyTurnoverUsdc),
      maxExposureUsdc: orNull(mandate.maxExposureUsdc),
      allowedTokens: mandate.allowedTokens?.map(address => ({ symbol: symbolOf(address), address })) ?? null,
      validUntil: orNull(mandate.validUntil),
      version: `${mandate.version}`,
    },
    closingSince: orNull(mandate.closingSince),
    openPositionIds: openPositionIds.map(String),
    asOf: presentAsOf(block),
  }
}
