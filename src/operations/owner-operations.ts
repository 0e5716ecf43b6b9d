import { agentParams } from '../resources/agent.ts'
import { ownerMessageReceipt } from '../resources/owner-message.ts'

/** What the quotes of owners' messages have in common. */
export const ownerQuote = {
  method: 'get',
  tag: 'Owners',
  params: agentParams,
  cache: 'none',
  status: 200,
  errors: [404, 502, 503],
} as const

/** What the operations that relay an owner's message have in common. A repeated message is a 200. */
export const ownerSubmission = {
  method: 'post',
  tag: 'Owners',
  params: agentParams,
  cache: 'none',
  status: 201,
  replay: 200,
  output: ownerMessageReceipt,
  errors: [404, 409, 502, 503],
} as const
