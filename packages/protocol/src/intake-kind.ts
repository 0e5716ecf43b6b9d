/** The kinds of intake that the operator may close, each by itself: closing one never blocks another. */
export const intakeKinds = {
  registrations: 'registrations and identity links',
  buys: 'opens and adds',
  reductions: 'reductions',
  exitLadders: 'updates of exit ladders, orders that sell and cancellations',
  ownerMessages: "owners' mandates, transfers, signers and cancellations",
  ownerStops: "owners' stops",
  priceRefreshes: 'requests to refresh prices',
} as const
export type IntakeKind = keyof typeof intakeKinds

/** A kind of intake that is closed: why, in the operator's words, and since when (Unix seconds). */
export type IntakeClosure = { kind: IntakeKind; reason: string; since: number }
