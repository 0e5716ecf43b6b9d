import {
  type Abi,
  type AbiEvent,
  type ContractEventName,
  type DecodeEventLogReturnType,
  decodeEventLog,
  type Hex,
  toEventSelector,
} from 'viem'

// viem hashes every event signature of the ABI on each call until one matches; here each is hashed once.
const eventsByAbi = new WeakMap<Abi, Map<string, AbiEvent>>()

function eventsOf(abi: Abi): Map<string, AbiEvent> {
  const known = eventsByAbi.get(abi)
  if (known) return known
  const events = abi.filter((item): item is AbiEvent => item.type === 'event')
  const byTopic = new Map(events.map(event => [toEventSelector(event), event]))
  eventsByAbi.set(abi, byTopic)
  return byTopic
}

/** Decodes the event of a log. Throws if the ABI has no event with its topic, or if the data does not match it. */
export function decodeEvent<const abi extends Abi>(
  abi: abi,
  { topics, data }: { topics: readonly string[]; data: Hex },
): DecodeEventLogReturnType<abi> {
  const event = eventsOf(abi).get(topics[0] ?? '')
  if (event === undefined) throw new Error(`The ABI has no event with the topic ${topics[0]}`)
  const decoded: unknown = decodeEventLog({ abi: [event], topics: topics as [Hex, ...Hex[]], data })
  return decoded as DecodeEventLogReturnType<abi>
}

/** Returns the first topic of an event's logs. Throws if the ABI has no such event. */
export function eventTopic<const abi extends Abi>(abi: abi, name: ContractEventName<abi>): Hex {
  const event = abi.find((item): item is AbiEvent => item.type === 'event' && item.name === name)
  if (event === undefined) throw new Error(`The ABI has no event ${name}`)
  return toEventSelector(event)
}
