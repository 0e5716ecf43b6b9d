import type { PrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { Address } from 'viem'
import { type QuoteMismatch, UntrustedQuoteError } from './errors.ts'
import { type JudgedDeadline, judgeDeadline } from './judge-deadline.ts'
import { type Domain, digestOf, type Message, type TypedData, typedDataOf } from './typed-data.ts'

/** What a quote must say. `message` has every field but nonce and deadline. */
export type Expectation = {
  domain: Domain
  primaryType: PrimaryType
  message: Message
  /** Who is to sign. */
  signer: Address
  /** The nonce that the chain has; undefined if it is not read. */
  nonce: bigint | undefined
  /** The deadline of the request; undefined if the service may suggest one within the bounds. */
  deadline: string | undefined
  /** The newest block's time if a node is read, else this machine's; Unix seconds. */
  now: number
  maxDeadlineSeconds: number
  /** The body to post, without nonce, deadline and signature. */
  body: Record<string, unknown>
}

/** The parts of a quote that the client compares; all of them come from the service and may be anything. */
export type GivenQuote = {
  typedData?: unknown
  digest?: unknown
  body?: unknown
  nonce?: unknown
  signer?: unknown
  serverTime?: unknown
}

/** Typed data that the client built itself, and what has to be known of the clocks. */
type Verified = { typedData: TypedData; nonce: string; deadline: string } & Omit<JudgedDeadline, 'refusal'>

/**
 * Compares every field of a quote's typed data, its digest and its body with the request, and returns typed data
 * that the client built itself. Throws an `UntrustedQuoteError` that names each field that differs.
 */
export function verifyQuote(quote: GivenQuote, expected: Expectation): Verified {
  const given = asRecord(quote.typedData)
  const message = asRecord(given.message)
  const compare = createComparison()
  compare.domain(asRecord(given.domain), expected.domain)
  compare.same('PRIMARY_TYPE', 'primaryType', expected.primaryType, given.primaryType)
  const wanted = typedDataOf(expected.domain, expected.primaryType, expected.message)
  compare.same('TYPES', 'types', canonical(wanted.types), canonical(given.types))
  for (const [name, value] of Object.entries(expected.message)) compare.field(name, value, message[name])
  for (const name of Object.keys(message))
    if (!(name in expected.message) && name !== 'nonce' && name !== 'deadline')
      compare.same('FIELDS', `message.${name}`, undefined, message[name])

  const nonce = digitsOf(message.nonce)
  compare.same('NONCE', 'message.nonce', expected.nonce === undefined ? quote.nonce : `${expected.nonce}`, nonce)
  if (nonce === undefined) compare.differs('NONCE', 'message.nonce', 'digits', message.nonce)
  const deadline = digitsOf(message.deadline)
  // Only a reader of the chain knows the nonce.
  const terms = { ...expected, isFromNode: expected.nonce !== undefined, serverTime: quote.serverTime }
  const { refusal, ...clocks }: JudgedDeadline =
    expected.deadline === undefined ? judgeDeadline(deadline, terms) : { secondsAhead: 0 }
  if (expected.deadline !== undefined) compare.same('DEADLINE', 'message.deadline', expected.deadline, deadline)
  else if (refusal) compare.differs('DEADLINE', 'message.deadline', refusal.expected, message.deadline, refusal.remedy)
  if (quote.signer !== undefined) compare.same('SIGNER', 'signer', expected.signer, quote.signer)

  const body = asRecord(quote.body)
  for (const [name, value] of Object.entries({ ...expected.body, deadline }))
    compare.same('BODY', `body.${name}`, canonical(value), canonical(body[name]))
  if ('nonce' in body) compare.same('NONCE', 'body.nonce', nonce, body.nonce)
  compare.throwIfDifferent()

  const signed = { nonce: nonce as string, deadline: deadline as string }
  const typedData = typedDataOf(expected.domain, expected.primaryType, { ...expected.message, ...signed })
  compare.same('DIGEST', 'digest', digestOf(typedData), quote.digest)
  compare.throwIfDifferent()
  return { typedData, ...signed, ...clocks }
}

function createComparison() {
  const mismatches: (QuoteMismatch & { code: string })[] = []
  /** Of the first mismatch. */
  let remedy: string | undefined
  const differs = (subject: string, field: string, expected: unknown, given: unknown, cure?: string) => {
    if (mismatches.length === 0) remedy = cure
    mismatches.push({ code: `QUOTE_${subject}_MISMATCH`, field, expected, given })
  }
  const same = (subject: string, field: string, expected: unknown, given: unknown) => {
    if (canonical(expected) !== canonical(given)) differs(subject, field, expected, given)
  }
  return {
    differs,
    same,
    domain(given: Record<string, unknown>, expected: Domain) {
      same('CHAIN_ID', 'domain.chainId', expected.chainId, given.chainId)
      same('CONTRACT', 'domain.verifyingContract', expected.verifyingContract, given.verifyingContract)
      same('DOMAIN', 'domain.name', expected.name, given.name)
      same('DOMAIN', 'domain.version', expected.version, given.version)
      for (const name of Object.keys(given))
        if (!(name in expected)) differs('DOMAIN', `domain.${name}`, undefined, given[name])
    },
    /** Compares a field of the message; its name in upper case is part of the code. */
    field: (name: string, expected: unknown, given: unknown) =>
      same(name.replaceAll(/(?<=[a-z])[A-Z]/g, '_$&').toUpperCase(), `message.${name}`, expected, given),
    throwIfDifferent() {
      const [first] = mismatches
      if (first) throw new UntrustedQuoteError(first.code, mismatches, remedy)
    },
  }
}

/** Returns the digits of a whole number as typed data has it; undefined for anything else. */
function digitsOf(value: unknown): string | undefined {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return `${value}`
  return typeof value === 'string' && /^(0|[1-9]\d{0,77})$/.test(value) ? value : undefined
}

/** Returns a text that is equal for equal values: hex in lower case, keys in order. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, inner) => {
      if (typeof inner === 'string' && /^0x[0-9a-fA-F]*$/.test(inner)) return inner.toLowerCase()
      if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
      return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
    }) ?? 'undefined'
  )
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
