import { z } from 'zod'
import { defineOperation } from './define-operation.ts'

export const getHealth = defineOperation(
  {
    id: 'getHealth',
    method: 'get',
    path: '/health',
    tag: 'Discovery',
    summary: 'Whether the service answers',
    description: 'Says that the Worker runs; it looks at nothing else and works without chain configuration.',
    status: 200,
    output: z.object({ status: z.literal('ok'), service: z.string() }).meta({ id: 'Health' }),
    errors: [],
  },
  async ({ config }) => ({ status: 'ok' as const, service: config.service }),
)
