/** The enums of the contracts, by name. The ABI has numbers in their place (protocol.md, "Enums"). */

export const Track = {
  Challenge: 0,
  Funded: 1,
  Prime: 2,
} as const

export const AgentStatus = {
  Draft: 0,
  Active: 1,
  Suspended: 2,
  Failed: 3,
  Graduated: 4,
  Exited: 5,
} as const

export const AllocationStatus = {
  Active: 0,
  Paused: 1,
  Removed: 2,
} as const

export const CapitalMode = {
  Simulated: 0,
  Real: 1,
} as const

export const PositionStatus = {
  Open: 0,
  Closed: 1,
} as const

export const TriggerType = {
  /** Fires at or below a negative trigger. */
  StopLoss: 0,
  /** Fires at or above a positive trigger. */
  TakeProfit: 1,
} as const

/** What an agent's owner lets it do. */
export const MandateMode = {
  Trade: 0,
  /** Sells and changes ladders, buys nothing. */
  ReduceOnly: 1,
  /** As ReduceOnly, and its ladders may only become tighter. */
  Stopped: 2,
} as const
