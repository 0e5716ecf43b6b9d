import { numberToHex } from 'viem'
import type { Requester, RequestingAgent } from '../../src/executor/relay-types.ts'

/** Returns an agent that is a day old, with an owner of its own unless one is named. */
export const agentOf = (id: bigint | number, facts: Partial<RequestingAgent> = {}): RequestingAgent => ({
  id: BigInt(id),
  owner: addressAt(id),
  isNew: false,
  ...facts,
})

/** Returns the signer of an agent. */
export const signerOfAgent = (id: bigint | number, facts?: Partial<RequestingAgent>): Requester => ({
  as: 'signer',
  agent: agentOf(id, facts),
  account: addressAt(id),
})

/** Returns a requester that no budget but the lane's limits, whose requests are relayed in order. */
export const taskOf = (id: bigint | number): Requester => ({ as: 'service', task: `task:${id}` })

/** Returns an account with a number. */
export const addressAt = (index: bigint | number) => numberToHex(BigInt(index) % 2n ** 160n, { size: 20 })
