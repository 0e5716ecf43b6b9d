import {
  type Abi,
  type AbiEvent,
  type AbiParameter,
  type ContractEventName,
  type DecodeEventLogReturnType,
  decodeAbiParameters,
  type Hex,
  toEventSelector,
} from 'viem'

/** An event and its parameters by where a log carries them. */
type EventLayout = { name: string; indexed: AbiParameter[]; inData: AbiParameter[] }

// viem's decodeEventLog hashes the signature of the event again for each log. Here each is hashed once.
const layoutsByAbi = new WeakMap<Abi, Map<string, EventLayout>>()

function layoutsOf(abi: Abi): Map<string, EventLayout> {
  const known = layoutsByAbi.get(abi)
  if (known) return known
  const events = abi.filter((item): item is AbiEvent => item.type === 'event')
  const byTopic = new Map(events.map(event => [toEventSelector(event), layoutOf(event)]))
  layoutsByAbi.set(abi, byTopic)
  return byTopic
}

const layoutOf = ({ name, inputs }: AbiEvent): EventLayout => ({
  name,
  indexed: inputs.filter(({ indexed }) => indexed).map(asTopic),
  inData: inputs.filter(({ indexed }) => !indexed),
})

/** Returns the parameter of a topic, which has the hash of a value that does not fit into it. */
const asTopic = (input: AbiParameter): AbiParameter =>
  /^(string|bytes|tuple)$|\]$/.test(input.type) ? { name: input.name, type: 'bytes32' } : input

/**
 * Decodes the event of a log. Throws if the ABI has no event with its topic, or if topics or data do not match it. All
 * parameters of the event must have names.
 */
export function decodeEvent<const abi extends Abi>(
  abi: abi,
  { topics, data }: { topics: readonly string[]; data: Hex },
): DecodeEventLogReturnType<abi> {
  const [selector = '', ...indexedTopics] = topics
  const layout = layoutsOf(abi).get(selector)
  if (layout === undefined) throw new Error(`The ABI has no event with the topic ${selector}`)
  const { name, indexed, inData } = layout
  const indexedData: Hex = `0x${indexedTopics.map(topic => topic.slice(2)).join('')}`
  const args = { ...decodeNamed(indexed, indexedData), ...decodeNamed(inData, data) }
  const hasArgs = indexed.length + inData.length > 0
  return { eventName: name, args: hasArgs ? args : undefined } as unknown as DecodeEventLogReturnType<abi>
}

function decodeNamed(parameters: readonly AbiParameter[], data: Hex): Record<string, unknown> {
  if (parameters.length === 0) return {}
  const values = decodeAbiParameters(parameters, data)
  return Object.fromEntries(parameters.map(({ name = '' }, index) => [name, values[index]]))
}

/** Returns the first topic of an event's logs. Throws if the ABI has no such event. */
export function eventTopic<const abi extends Abi>(abi: abi, name: ContractEventName<abi>): Hex {
  const event = abi.find((item): item is AbiEvent => item.type === 'event' && item.name === name)
  if (event === undefined) throw new Error(`The ABI has no event ${name}`)
  return toEventSelector(event)
}
