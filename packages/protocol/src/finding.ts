/**
 * How a checked fact is. A `warning` works but should be looked at; what is `wrong` stops something or endangers money;
 * `unchecked` could not be read.
 */
export type Verdict = 'ok' | 'unchecked' | 'warning' | 'wrong'

/** One checked fact about a deployment. */
export type Finding = {
  /** The check, such as `wiring` or `role`. */
  check: string
  /** What was checked, such as `TradeRouter.swapAdapter`. */
  subject: string
  verdict: Verdict
  /** What holds, or what is wrong, in one sentence. */
  sentence: string
  /** The fix: a command, or a step without one. Null if there is nothing to fix. */
  fix: string | null
}

/** Returns functions that build the findings of one check. */
export const findingsOf = (check: string) => ({
  ok: (subject: string, sentence: string): Finding => ({ check, subject, verdict: 'ok', sentence, fix: null }),
  unchecked: (subject: string, sentence: string, fix: string | null = null): Finding => ({
    check,
    subject,
    verdict: 'unchecked',
    sentence,
    fix,
  }),
  warning: (subject: string, sentence: string, fix: string): Finding => ({
    check,
    subject,
    verdict: 'warning',
    sentence,
    fix,
  }),
  wrong: (subject: string, sentence: string, fix: string): Finding => ({
    check,
    subject,
    verdict: 'wrong',
    sentence,
    fix,
  }),
})

const SEVERITY: Verdict[] = ['ok', 'unchecked', 'warning', 'wrong']

/** Returns the worst verdict of several findings; ok if there is none. */
export const worstVerdict = (findings: readonly Finding[]): Verdict =>
  SEVERITY[Math.max(0, ...findings.map(({ verdict }) => SEVERITY.indexOf(verdict)))] ?? 'ok'

/** Returns what the operator should fix. */
export const faultsOf = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ verdict }) => verdict === 'warning' || verdict === 'wrong')
