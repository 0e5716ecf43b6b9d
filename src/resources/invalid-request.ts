import {
  firstProblem,
  type GivenInput,
  type InputIssue,
  inputProblems,
} from '@agent-trading-service/protocol/input-problems'
import type { Refusal } from '../errors/refusal.ts'
import { malformed, refuse } from '../errors/refuse.ts'

/**
 * Returns INVALID_REQUEST for input that does not parse: the first issue in the message, up to ten in `details`, each
 * with its field, what came and what would pass.
 */
export function invalidRequest(issues: readonly InputIssue[], input: GivenInput): Refusal {
  const problems = inputProblems(issues, input)
  const problem = firstProblem(problems)
  return problems.length > 0 ? refuse('INVALID_REQUEST', { problem, problems }) : malformed(problem)
}

/** Returns INVALID_REQUEST for a field that parses and cannot be served. */
export const invalidField = (name: string, message: string, given: unknown): Refusal =>
  invalidRequest([{ path: [name], message }], { given: { [name]: given }, fields: {} })
