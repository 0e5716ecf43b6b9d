import { type Address, type Hex, isAddressEqual, toEventSelector } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'

type Logs = readonly { address: Address; topics: readonly Hex[] }[]

const intentEvents = new Set(
  tradeRouterAbi
    .filter(item => item.type === 'event' && item.name.endsWith('FromIntent'))
    .map(event => toEventSelector(event as never)),
)
const AGENT_REGISTERED = toEventSelector(
  agentRegistryAbi.find(item => item.type === 'event' && item.name === 'AgentRegistered') as never,
)

/** The position id of the router's intent event; undefined where there is none. */
export const positionIdIn = (router: Address, logs: Logs): bigint | undefined =>
  idOf(logs.find(({ address, topics: [event] }) => isAddressEqual(address, router) && intentEvents.has(event as Hex)))

/** The agent id of the registry's AgentRegistered event; undefined where there is none. */
export const agentIdIn = (registry: Address, logs: Logs): bigint | undefined =>
  idOf(logs.find(({ address, topics: [event] }) => isAddressEqual(address, registry) && event === AGENT_REGISTERED))

const idOf = (log: Logs[number] | undefined) => (log?.topics[1] === undefined ? undefined : BigInt(log.topics[1]))
