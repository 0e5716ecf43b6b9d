import { z } from 'zod'
import { intakeClosure, presentClosure } from '../resources/intake.ts'
import { defineOperation } from './define-operation.ts'

export const getHealth = defineOperation(
  {
    id: 'getHealth',
    method: 'get',
    path: '/health',
    tag: 'Discovery',
    summary: 'Check that the service is up',
    description:
      'Returns ok if the Worker runs, and which kinds of requests the operator has closed. Checks nothing else and works without chain configuration.',
    cache: 'none',
    status: 200,
    output: z
      .object({
        status: z.literal('ok'),
        service: z.string(),
        closedIntake: z
          .array(intakeClosure)
          .meta({ description: 'The kinds of requests that the operator has closed; usually none' }),
      })
      .meta({ id: 'Health' }),
    errors: [],
  },
  async ({ config, intakeSwitches }) => ({
    status: 'ok' as const,
    service: config.service,
    closedIntake: (await intakeSwitches.closures()).map(presentClosure),
  }),
)
