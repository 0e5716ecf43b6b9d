import { type Abi, type AbiEvent, type DecodeEventLogReturnType, decodeEventLog, type Hex, toEventSelector } from 'viem'

// viem hashes the signature of one event after the other until one has a log's topic; here each is hashed once.
const indexed = new WeakMap<Abi, Map<string, AbiEvent>>()

function eventsOf(abi: Abi): Map<string, AbiEvent> {
  const known = indexed.get(abi)
  if (known) return known
  const events = abi.filter((item): item is AbiEvent => item.type === 'event')
  const byTopic = new Map(events.map(event => [toEventSelector(event), event]))
  indexed.set(abi, byTopic)
  return byTopic
}

/** The event of a log. Throws when the ABI has none of its topic, or the log does not hold what the event says. */
export function decodeEvent<const abi extends Abi>(
  abi: abi,
  { topics, data }: { topics: readonly string[]; data: Hex },
): DecodeEventLogReturnType<abi> {
  const event = eventsOf(abi).get(topics[0] ?? '')
  if (event === undefined) throw new Error(`The ABI has no event ${topics[0]}`)
  return decodeEventLog({ abi: [event], topics: topics as [Hex, ...Hex[]], data }) as never
}
