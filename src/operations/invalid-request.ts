import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'

/** The part of a zod issue that a caller sees. */
type InputIssue = { path: PropertyKey[]; message: string }

const MAX_REPORTED_ISSUES = 10

/** Returns INVALID_REQUEST for input that does not parse: the first issue in the message, up to ten in `details`. */
export function invalidRequest(issues: readonly InputIssue[]): Refusal {
  const problems = issues
    .slice(0, MAX_REPORTED_ISSUES)
    .map(({ path, message }) => ({ path: path.join('.'), problem: message }))
  const [first] = problems
  const problem =
    first === undefined ? 'it does not parse' : first.path === '' ? first.problem : `${first.path}: ${first.problem}`
  return refuse('INVALID_REQUEST', { problem, problems })
}
