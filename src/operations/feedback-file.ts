import { z } from 'zod'
import { refuse } from '../errors/refuse.ts'
import { feedbackFile } from '../resources/erc8004.ts'
import { agentId } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const weekStart = z
  .string()
  .regex(/^[0-9]{1,10}$/, 'must be Unix seconds')
  .transform(Number)
  .meta({ description: 'First second of the week, a Monday in UTC', example: '1753660800' })

export const getFeedbackFile = defineOperation(
  {
    id: 'getFeedbackFile',
    method: 'get',
    path: '/agents/{agentId}/feedback/{weekStart}',
    tag: 'Agents',
    summary: 'Get the ERC-8004 feedback file about a week',
    description:
      "Returns the immutable file that the reporter's feedback (`tradingYield`, `week`) in the ERC-8004 reputation registry names. Its keccak256, over the bytes of this response, is the `feedbackHash` on chain.",
    params: z.object({ agentId, weekStart }),
    cache: 'none',
    status: 200,
    output: feedbackFile,
    errors: [404],
  },
  async ({ history }, { agentId, weekStart }) => {
    const content = await history.feedback.read(agentId, weekStart)
    if (content === undefined) throw refuse('FEEDBACK_NOT_FOUND', { agentId, weekStart })
    return JSON.parse(content) as z.input<typeof feedbackFile>
  },
)
