/** What an agent's owner lets the agent do, as it is in force. USDC base units; a limit of 0 is no limit. */
export type Mandate = {
  /** A `MandateMode`. */
  mode: number
  maxTradeUsdc: bigint
  maxDailyTurnoverUsdc: bigint
  maxExposureUsdc: bigint
  /** Whether the mandate names the tokens that the agent may buy. */
  hasTokenList: boolean
  /** The last second in which the agent may buy, in Unix seconds; 0 for no end. */
  validUntil: bigint
  /** Since when the owner closes the agent's positions, in Unix seconds; 0 while it does not. */
  closingSince: bigint
}

const TIME_BITS = 40n
const CLOSING_AT = 48n

/** Returns since when the owner closes the agent's positions, from the registry's packed state of a mandate. */
export const closingSinceOf = (mandateState: bigint): bigint => (mandateState >> CLOSING_AT) & (2n ** TIME_BITS - 1n)
