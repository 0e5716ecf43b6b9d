/** The exit codes of `ats`, by kind of failure. docs/cli.md lists them. */
export const exitCodes = {
  /** A defect of `ats`. */
  internal: 1,
  /** The command line or the input is not valid. */
  usage: 2,
  /** A key is missing, locked, or stored so that others can read it. */
  key: 3,
  /** The limits file forbids the trade. */
  limits: 4,
  /** A check fails, or the service or a contract refuses. */
  refused: 5,
  /** The fee is not paid. */
  payment: 6,
  /** The service cannot be reached or is at capacity: try again. */
  unavailable: 7,
  /** The intent was sent and its outcome is not known yet. */
  unknown: 8,
  /** The quote differs from the request. */
  mismatch: 9,
  /** The user said no. */
  declined: 10,
  /** `ats doctor` has warnings and nothing worse. */
  warning: 11,
  /** `ats doctor` found something wrong. */
  wrong: 12,
} as const
export type FailureKind = keyof typeof exitCodes

/** What to do next: for everyone, or for a person at a command line and for a model with tools. */
export type Remedy = string | { command: string; tool: string }

/** What the error of the service adds to a failure. */
export type FailureFacts = {
  code?: string | undefined
  remedy?: Remedy | undefined
  requestId?: string | undefined
  retryable?: boolean | undefined
  details?: unknown
  /** Whether message and remedy are words of the service. */
  isSaid?: boolean
  /** Whether the remedy is in words of the service, because we have none for its code. */
  isRemedySaid?: boolean
}

/** A failure that `ats` explains in one sentence. Its kind decides the exit code. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly kind: FailureKind
  readonly facts: FailureFacts

  /** The remedy for a person at a command line. */
  get commandRemedy(): string | undefined {
    const { remedy } = this.facts
    return typeof remedy === 'object' ? remedy.command : remedy
  }

  constructor(kind: FailureKind, message: string, facts: FailureFacts = {}) {
    super(message)
    this.kind = kind
    this.facts = facts
  }
}
