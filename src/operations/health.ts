import { z } from 'zod'
import { defineOperation } from './define-operation.ts'

export const getHealth = defineOperation(
  {
    id: 'getHealth',
    method: 'get',
    path: '/health',
    tag: 'Discovery',
    summary: 'Check that the service is up',
    description: 'Returns ok if the Worker runs. Checks nothing else and works without chain configuration.',
    cache: 'none',
    status: 200,
    output: z.object({ status: z.literal('ok'), service: z.string() }).meta({ id: 'Health' }),
    errors: [],
  },
  async ({ config }) => ({ status: 'ok' as const, service: config.service }),
)
