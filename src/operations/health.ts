import { z } from 'zod'
import { hasBearer } from '../call.ts'
import { allNamed } from '../concurrency.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { CHECK_SECONDS } from '../metrics/object.ts'
import { readReadiness } from '../readiness/read-readiness.ts'
import { intakeClosure, presentClosure } from '../resources/intake.ts'
import { unixSeconds } from '../resources/primitives.ts'
import { serviceReadiness } from '../resources/service-readiness.ts'
import { defineOperation } from './define-operation.ts'

export const getHealth = defineOperation(
  {
    id: 'getHealth',
    path: '/health',
    takesNoTurn: true,
    tag: 'Discovery',
    summary: 'Check that the service is up',
    description:
      'Returns ok if the Worker runs, and which kinds of requests the operator has closed. Checks nothing else and works without chain configuration.',
    output: z
      .object({
        status: z.literal('ok'),
        service: z.string(),
        closedIntake: z
          .array(intakeClosure)
          .describe('The kinds of requests that the operator has closed; usually none'),
      })
      .meta({ id: 'Health' }),
    errors: [],
  },
  async ({ config, intakeSwitches }: Pick<Context, 'config' | 'intakeSwitches'>) => ({
    status: 'ok' as const,
    service: config.service,
    closedIntake: (await intakeSwitches.closures()).map(presentClosure),
  }),
)

export const getReadiness = defineOperation(
  {
    id: 'getReadiness',
    path: '/health/ready',
    tag: 'Discovery',
    summary: 'Check that trading is possible',
    description:
      "Checks the node, the contracts, the sending accounts and their roles, the vaults' idle USDC, the index, the event streams, the prices, the pause switches, and how contracts, roles and limits are set up. Responds 503 if nobody could open a position; `problems` lists what works only in part, `findings` what is set up wrong, with what fixes it. The state is read at most every two seconds. Balances are shown only with the operator's secret as a bearer token.",
    security: 'operator',
    output: serviceReadiness,
    errors: [502, 503],
    statusDescriptions: { 503: 'Trading is not possible' },
  },
  async (context: Context, _, call) => {
    const { blocking, partial, ...read } = await readReadiness(context)
    const isOperator = hasBearer(call, context.config.operatorSecret)
    const report = isOperator ? read.report : withoutBalances(read.report)
    if (blocking.length > 0) throw refuse('NOT_READY', { problem: blocking.join('; '), ...report, problems: partial })
    return { status: 'ready' as const, ...report, problems: partial }
  },
)

export const getHealthHistory = defineOperation(
  {
    id: 'getHealthHistory',
    path: '/health/history',
    tag: 'Discovery',
    summary: 'Show when trading was possible',
    description: `Returns the days of the last 90 with checks and the last 50 incidents, oldest first. Every five minutes the service checks what \`GET /health/ready\` checks. A day without all its ${86_400 / CHECK_SECONDS} checks is one on which the service did not run, or could not record that it ran.`,
    output: z
      .object({
        checkSeconds: z.int().meta({ description: 'Seconds between two checks', example: CHECK_SECONDS }),
        days: z.array(
          z.object({
            day: unixSeconds('First second of the UTC day'),
            checks: z.int().meta({ description: 'How many checks there were', example: 288 }),
            ready: z.int().meta({ description: 'How many of them found that trading was possible', example: 288 }),
            versions: z
              .array(z.string())
              .meta({ description: 'The versions of the service that checked, in their order', example: ['0.1.0'] }),
          }),
        ),
        incidents: z.array(
          z.object({
            startedAt: unixSeconds('Time of the first check that found trading impossible'),
            endedAt: unixSeconds('Time of the next check that found it possible; null while it lasts').nullable(),
            version: z.string().meta({ description: 'The version of the service at its start', example: '0.1.0' }),
            problems: z
              .array(z.string())
              .meta({ description: 'What made trading impossible', example: ['the node cannot be reached'] }),
          }),
        ),
      })
      .meta({ id: 'HealthHistory' }),
    errors: [503],
  },
  async ({ metrics }: Pick<Context, 'metrics'>) => {
    const { days, incidents } = await allNamed({ days: metrics.days(), incidents: metrics.incidents() })
    return {
      checkSeconds: CHECK_SECONDS,
      days: days.map(({ day, ...checks }) => ({ day: `${day}`, ...checks })),
      incidents: incidents.map(({ startedAt, endedAt, ...facts }) => ({
        startedAt: `${startedAt}`,
        endedAt: endedAt === undefined ? null : `${endedAt}`,
        ...facts,
      })),
    }
  },
)

/** Returns a report with the balance of every account hidden. */
function withoutBalances<Report extends Awaited<ReturnType<typeof readReadiness>>['report']>(report: Report): Report {
  const hide = <Group extends Report['executor']>(group: Group): Group => ({
    ...group,
    lanes: group.lanes.map(lane => ({ ...lane, balanceWei: null })),
  })
  const { executor, relayer, updater, reporter, keeper } = report
  return {
    ...report,
    executor: hide(executor),
    relayer: hide(relayer),
    updater: hide(updater),
    reporter: hide(reporter),
    keeper: hide(keeper),
  }
}
