import {
  type CodeOfError,
  type ContractError,
  codeOfError,
  decodeRevert,
  type ErrorFacts,
  type ErrorName,
  errorNames,
} from '@agent-trading-service/protocol/decode-revert'
import { transferRefusalOf } from '@agent-trading-service/protocol/transfer-refusal'
import type { Address, Hex } from 'viem'
import type { Code, FactsOf } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'

/** What the caller of a contract knows and the contract error does not say. */
export type RevertContext = {
  agentId?: bigint | undefined
  signer?: Address | undefined
  digest?: Hex | undefined
  deadline?: bigint | undefined
  /** Unix seconds. */
  now?: bigint | undefined
  /** The transaction that reverted; absent if the call was only simulated. */
  transactionHash?: Hex | undefined
}

/**
 * Whether the catalogue has a row under the code of a contract error that takes exactly its arguments. The refusal of
 * such an error follows from its name and its ABI.
 */
type IsDerived<Name extends ErrorName> =
  CodeOfError<Name> extends infer C extends Code
    ? [ErrorFacts<Name>, keyof ErrorFacts<Name>] extends [FactsOf<C>, keyof FactsOf<C>]
      ? true
      : false
    : false
type SpecialName = { [Name in ErrorName]: IsDerived<Name> extends true ? never : Name }[ErrorName]

/** The other errors, whose refusals have other facts. A contract that gains such an error fails `tsc` here. */
const refusals: { [Name in SpecialName]: (facts: ErrorFacts<Name>, context: RevertContext) => Refusal } = {
  ExpiredDeadline: (_, { deadline, now }) => refuse('EXPIRED_DEADLINE', { given: deadline, serverTime: now }),
  InvalidSignature: (_, { signer, digest }) =>
    refuse('INVALID_SIGNATURE', { problem: 'the contract did not accept it', signer, recovered: undefined, digest }),
  InvalidNonce: ({ expected, provided }) => refuse('INVALID_NONCE', { given: provided, expected }),
  InvalidLiquidityPolicy: () => refuse('INVALID_LIQUIDITY_POLICY'),
  InvalidExitRules: () => refuse('INVALID_EXIT_RULES', { problem: 'the contract did not accept it' }),
  ExitRulesOutOfBounds: () => refuse('EXIT_RULES_OUT_OF_BOUNDS', { problem: 'the contract did not accept it' }),
  LimitOutOfRange: ({ field, value, bound }) => refuse('LIMIT_OUT_OF_RANGE', { field, value, max: bound }),
  PositionNotFound: ({ positionId }, { agentId }) => refuse('POSITION_NOT_FOUND', { agentId, positionId }),
}

export const contractCodes: readonly Code[] = errorNames.map(codeOfError)

/**
 * Returns the refusal of a call that a contract reverted; TRANSFER_REFUSED if a token did, INTENT_REFUSED if the revert
 * data cannot be decoded.
 */
export function refusalOfRevert(data: Hex | undefined, context: RevertContext = {}): Refusal {
  const error = decodeRevert(data)
  const reason = transferRefusalOf(data)
  const unknown = () => refuse('INTENT_REFUSED', { problem: 'it gave no reason that is known here' })
  const refusal =
    error === undefined
      ? reason === undefined
        ? unknown()
        : refuse('TRANSFER_REFUSED', { reason })
      : refusalOfError(error, context)
  const { transactionHash } = context
  return transactionHash === undefined ? refusal : refusal.withDetails({ transactionHash })
}

// The name decides the type of the facts, which tsc cannot follow through the table.
function refusalOfError({ name, facts }: ContractError, context: RevertContext): Refusal {
  const special = (refusals as Partial<Record<ErrorName, (facts: object, context: RevertContext) => Refusal>>)[name]
  return special?.(facts, context) ?? (refuse as (code: Code, facts: object) => Refusal)(codeOfError(name), facts)
}
