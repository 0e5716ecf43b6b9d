import { type Address, type Hex, isAddressEqual, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../../contracts-abi/agent-registry.ts'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { eventTopic } from './decode-event.ts'

type Logs = readonly { address: Address; topics: readonly Hex[] }[]

const INTENT_TOPICS: ReadonlySet<string | undefined> = new Set(
  tradeRouterAbi
    .filter(item => item.type === 'event')
    .filter(({ name }) => name.endsWith('FromIntent'))
    .map(event => toEventSelector(event)),
)
const AGENT_REGISTERED = eventTopic(agentRegistryAbi, 'AgentRegistered')

/** Returns the position id of the router's intent event in a receipt; undefined if there is none. */
export const positionIdIn = (router: Address, logs: Logs): bigint | undefined =>
  firstArgument(logs.find(({ address, topics }) => isAddressEqual(address, router) && INTENT_TOPICS.has(topics[0])))

/** Returns the agent id of the registry's AgentRegistered event in a receipt; undefined if there is none. */
export const agentIdIn = (registry: Address, logs: Logs): bigint | undefined =>
  firstArgument(logs.find(({ address, topics }) => isAddressEqual(address, registry) && topics[0] === AGENT_REGISTERED))

const firstArgument = (log: Logs[number] | undefined) =>
  log?.topics[1] === undefined ? undefined : BigInt(log.topics[1])
