import { type Client, createClient } from '@agent-trading-service/client'
import { isAddress as isChecksummed } from 'viem'
import { reads } from '../../data/client.ts'

const clients = new Map<string, Client>()

/**
 * Returns the client that prepares an agent's messages. It compares each quote with the request before a wallet sees
 * it, and repeats a submission only with the same signature, so that it executes once.
 */
async function clientOf(agentId: string): Promise<Client> {
  const { ownerControls } = await reads.getMandate({ agentId })
  const pins = { ownerControls: ownerControls as `0x${string}` }
  const client = clients.get(ownerControls) ?? createClient({ baseUrl: window.location.origin, pins })
  clients.set(ownerControls, client)
  return client
}

/** Returns what the owner of an agent can sign. */
export const ownerOf = async (agentId: string): Promise<ReturnType<Client['owner']>> =>
  (await clientOf(agentId)).owner(agentId)

/** Returns the orders that the signer of an agent can sign. */
export const ordersOf = async (agentId: string): Promise<ReturnType<Client['agent']>['orders']> =>
  (await clientOf(agentId)).agent(agentId).orders

export const isAddress = (text: string): text is `0x${string}` => addressProblem(text) === undefined

/** Says why a text is no address that someone can hold; undefined if it is one. */
export function addressProblem(text: string): string | undefined {
  const address = text.trim()
  if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return 'Enter an address of 20 bytes.'
  if (/^0x0{40}$/.test(address)) return 'Nobody holds the zero address. Enter another one.'
  return isChecksummed(address)
    ? undefined
    : 'The capitals of this address do not fit: a character is wrong. Copy it again.'
}
