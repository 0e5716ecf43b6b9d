/** What the service did not accept of an agent, by code, and the rules that failed in the checks of its quotes. */
export type Refused = { refusals: Record<string, number>; limits: Record<string, number> }

/** What is counted at an agent's port, with all of its calls. */
export type Counted = Refused & { calls: number }

/** Where the runner reads what was counted at an agent's port. */
export const REFUSED_PATH = '/rehearsal/refused'
