import { shorten } from '@agent-trading-service/protocol/shorten'
import { showUnseen } from '@agent-trading-service/protocol/unseen-text'

/** Facts that the service writes itself. */
const WRITTEN_HERE = ['problem', 'reason']
/** Longer than a hash. */
const MAX_FACT = 80

const shortenFact = (value: string) => (value.length > MAX_FACT ? shorten(value) : showUnseen(value))

/** Returns facts with the texts of the caller shortened. */
export const shortenFacts = <F extends Record<string, unknown>>(facts: F): F =>
  Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === 'string' && !WRITTEN_HERE.includes(name) ? shortenFact(value) : value,
    ]),
  ) as F
