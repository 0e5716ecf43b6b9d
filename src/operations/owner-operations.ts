import { agentParams } from '../resources/agent.ts'
import { ownerMessageReceipt } from '../resources/owner-message.ts'

/** What the quotes of owners' messages have in common. */
export const ownerQuote = {
  tag: 'Owners',
  params: agentParams,
} as const

/** What the operations that relay an owner's message have in common. A repeated message is a 200. */
export const ownerSubmission = {
  method: 'post',
  tag: 'Owners',
  params: agentParams,
  status: 201,
  replay: 200,
  output: ownerMessageReceipt,
  errors: [404, 409, 502, 503],
} as const
