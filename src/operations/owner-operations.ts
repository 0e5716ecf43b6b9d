import { ownerMessageReceipt } from '../resources/owner-message.ts'

/** What the quotes of owners' messages have in common. */
export const ownerQuote = {
  tag: 'Owners',
} as const

/** What the operations that relay an owner's message have in common. A repeated message is a 200. */
export const ownerSubmission = {
  method: 'post',
  tag: 'Owners',
  status: 201,
  replay: 200,
  output: ownerMessageReceipt,
  errors: [404, 409, 502, 503],
} as const
