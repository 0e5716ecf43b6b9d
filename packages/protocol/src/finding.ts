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

/** What is at fault has a fix. */
type FaultBuilder = (subject: string, sentence: string, fix: string) => Finding

/** Returns functions that build the findings of one check. */
export function findingsOf(check: string) {
  const finding =
    (verdict: Verdict) =>
    (subject: string, sentence: string, fix: string | null = null): Finding => ({
      check,
      subject,
      verdict,
      sentence,
      fix,
    })
  const ok: (subject: string, sentence: string) => Finding = finding('ok')
  const warning: FaultBuilder = finding('warning')
  const wrong: FaultBuilder = finding('wrong')
  return { ok, unchecked: finding('unchecked'), warning, wrong }
}

const SEVERITY: Verdict[] = ['ok', 'unchecked', 'warning', 'wrong']

/** Returns the worst verdict of several findings; ok if there is none. */
export const worstVerdict = (findings: readonly Finding[]): Verdict =>
  SEVERITY[Math.max(0, ...findings.map(({ verdict }) => SEVERITY.indexOf(verdict)))] ?? 'ok'

/** Returns what the operator should fix. */
export const faultsOf = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ verdict }) => verdict === 'warning' || verdict === 'wrong')
