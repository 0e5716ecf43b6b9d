import { z } from 'zod'

export const errorBody = z
  .object({
    error: z.string().meta({ description: 'One sentence for the caller' }),
    code: z.string().meta({ description: 'Stable code in SCREAMING_SNAKE case', example: 'AGENT_NOT_FOUND' }),
    requestId: z.string().meta({ description: 'Also in the header X-Request-Id; name it when you report a problem' }),
    details: z.record(z.string(), z.unknown()).optional().meta({ description: 'The facts: limit, given, expected' }),
    remedy: z.string().optional().meta({ description: 'What to do about it' }),
    retryable: z.boolean().optional().meta({ description: 'Whether the identical request can succeed later' }),
    retryAfterSeconds: z.int().optional(),
  })
  .meta({ id: 'Error' })
