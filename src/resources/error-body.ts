import { z } from 'zod'

/** The body of every error response. */
export const errorBody = z
  .object({
    error: z.string().meta({ description: 'A message for the caller' }),
    code: z.string().meta({ description: 'Stable code in SCREAMING_SNAKE_CASE', example: 'AGENT_NOT_FOUND' }),
    requestId: z.string().meta({ description: 'Also in the header X-Request-Id; quote it when reporting a problem' }),
    details: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'Facts such as the limit, the given and the expected value' }),
    remedy: z.string().optional().meta({ description: 'What to do next' }),
    retryable: z.boolean().optional().meta({ description: 'Whether the identical request may succeed later' }),
    retryAfterSeconds: z.int().optional(),
  })
  .meta({ id: 'Error' })
