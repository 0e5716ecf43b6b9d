import type { ToolSchema } from '@agent-trading-service/protocol/host-schema'
import { z } from 'zod'
import { requestKindOf } from '../operations/operation.ts'
import type { BriefList } from '../operations/operation-definition.ts'
import { type Fields, isFields } from './normalize-messages.ts'
import type { ToolOperation } from './tool-operations.ts'

// A quote has more than a model reads before it decides: the typed data alone is 400 tokens. By default it gets what
// decides, with the body and the digest; a program asks for the rest. Of some lists it gets each entry in short.

/** How much of a result a tool returns. */
export const detail = z.enum(['brief', 'full'])

const isQuote = (operation: ToolOperation): boolean => requestKindOf(operation) === 'quotes'

/** Tells whether a tool returns a brief result unless the call asks for a full one. */
export const isBrief = (operation: ToolOperation): boolean => isQuote(operation) || operation.tool.brief !== undefined

/** Returns what a model needs of a result. */
export const briefResult = (operation: ToolOperation, whole: Fields): Fields =>
  operation.tool.brief === undefined ? briefQuote(whole) : briefList(whole, operation.tool.brief)

/** 250 tokens of 3.8 characters. */
const MAX_QUOTE_CHARACTERS = 950
/** 400 tokens. */
const MAX_LIST_CHARACTERS = 1_520
/** For the list of the fields that did not fit. */
const RESERVED_CHARACTERS = 90

const pick = (value: unknown, ...names: string[]): Fields | undefined =>
  isFields(value)
    ? Object.fromEntries(names.flatMap(name => (value[name] === undefined ? [] : [[name, value[name]]])))
    : undefined

/**
 * Returns what decides about a quote, the most important fields first, and of those as many as 250 tokens have room
 * for.
 */
function briefQuote(quote: Fields): Fields {
  const kept: Fields = {}
  const omitted: string[] = []
  for (const group of groupsOf(quote)) {
    const fields = Object.entries(group).filter(([, value]) => value !== undefined)
    const size = JSON.stringify({ ...kept, ...Object.fromEntries(fields) }).length
    if (size <= MAX_QUOTE_CHARACTERS - RESERVED_CHARACTERS) Object.assign(kept, Object.fromEntries(fields))
    else omitted.push(...fields.map(([name]) => name))
  }
  return omitted.length === 0 ? kept : { ...kept, omitted: `${omitted.join(', ')}: call with detail "full"` }
}

/** Returns a list with its entries in short, as many as there is room for. */
function briefList(whole: Fields, { list, entry }: BriefList): Fields {
  const entries = (whole[list] as never[]).map(entry)
  const withEntries = (count: number): Fields => {
    const left = entries.length - count
    const omitted = `${left > 0 ? `${left} more and ` : ''}the other fields: call with detail "full"`
    return { ...whole, [list]: entries.slice(0, count), omitted }
  }
  let count = entries.length
  while (count > 0 && JSON.stringify(withEntries(count)).length > MAX_LIST_CHARACTERS) count--
  return withEntries(count)
}

/** The fields that stand or fall together. */
function groupsOf(quote: Fields): Fields[] {
  const { body, digest, ownerConsent, estimate, registrationFee, market, exitBounds, pendingRules, defaultExit } = quote
  const failed = failedOf(quote.checks)
  const waiting = failedOf(quote.executionChecks)
  const signable = body === undefined ? undefined : { body, digest, next: NEXT }
  return [
    { passes: Array.isArray(quote.checks) ? failed.length === 0 : undefined },
    failed.length > 0 ? { failedChecks: codesOf(failed), firstFailure: firstFailureOf(failed) } : {},
    waiting.length > 0 ? { failedExecutionChecks: codesOf(waiting) } : {},
    pick(quote, 'signer', 'signers') ?? {},
    signable ?? {},
    { warnings: quote.warnings },
    pick(quote, 'lossAtStopUsdc', 'lossAtStopOfEquityBps', 'lossAtStopOfDailyLimitBps') ?? {},
    { estimate: pick(estimate, 'tokenOut', 'usdcOut', 'priceUsd', 'priceImpactBps', 'minUsdcOut') },
    pick(quote, 'maxUsdcAmountHuman', 'bindingRule') ?? {},
    { registrationFee: pick(registrationFee, 'displayUsd', 'assetSymbol') },
    { ownerConsent: pick(ownerConsent, 'owner', 'nonce', 'digest') },
    { market: pick(market, 'session') },
    signable ? {} : { ...pick(quote, 'nonce', 'signerNonce', 'suggestedDeadline'), defaultExit },
    signable ? {} : { exitBounds, pendingRules },
  ]
}

const NEXT = 'To sign, get typedData with detail "full"; then send its body with the signature.'

const failedOf = (checks: unknown): Fields[] =>
  Array.isArray(checks) ? checks.filter(check => isFields(check) && check.pass === false) : []

const codesOf = (checks: readonly Fields[]) => checks.map(({ code }) => code)

const firstFailureOf = ([first]: readonly Fields[]) => pick(first, 'limit', 'used', 'after', 'problem', 'remedy')

const PASSES: Fields = { passes: { type: 'boolean' } }
const LISTED = ['signer', 'body', 'digest', 'estimate', 'maxUsdcAmountHuman', 'registrationFee']

/**
 * Returns the output schema of a tool with brief results, from that of the full one: of a quote, the fields of the
 * brief one.
 */
export function briefOutputSchema(operation: ToolOperation, { type, properties }: ToolSchema): ToolSchema {
  if (!isQuote(operation)) return { type, properties }
  const fields = Object.entries(isFields(properties) ? properties : {})
  const added = fields.some(([name]) => name === 'checks') ? PASSES : {}
  return { type, properties: { ...added, ...Object.fromEntries(fields.filter(([name]) => LISTED.includes(name))) } }
}
