import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import type { AdminContext } from '../operator/admin-context.ts'
import type { Operation } from '../operator/timelock.ts'
import { cleanLines } from '../output/clean.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { type AdminOptions, createAdminCommand, createDeploymentCommand, runPlans } from './admin-run.ts'
import { createGroup } from './options.ts'

/** `ats admin timelock`: the operations that wait, in words, and the steps that any account or a proposer may take. */
export const timelockCommand = (): Command =>
  createGroup('timelock', 'list, execute and cancel the operations of the timelock', 'ats admin timelock list')
    .addCommand(listCommand())
    .addCommand(stepCommand('execute', 'execute an operation that is ready'))
    .addCommand(stepCommand('cancel', 'cancel an operation, with the key of a proposer'))

function listCommand(): Command {
  return createDeploymentCommand('list', 'list operations with what they change', 'ats admin timelock list --all')
    .option('--all', 'also those that are done or cancelled')
    .action(async (options: AdminOptions & { all?: boolean }) => {
      const [{ openAdmin }, { callsOf }, { describeCall }] = await Promise.all([
        import('../operator/admin-context.ts'),
        import('../operator/timelock.ts'),
        import('../operator/describe-call.ts'),
      ])
      const context = await openAdmin(options)
      const operations = await withProgress('Reading the operations', readOperations(context))
      const shown = operations.filter(({ state }) => options.all || state === 'waiting' || state === 'ready')
      const described = await Promise.all(
        shown.map(async operation => ({
          id: operation.id,
          state: operation.state === 'not scheduled' ? 'cancelled' : operation.state,
          due: operation.readyAt === undefined ? null : new Date(Number(operation.readyAt) * 1_000).toISOString(),
          calls: await Promise.all(
            callsOf(context.book, operation).map(async (call, index) => {
              if (call) return describeCall(context.client, context.book, call)
              const sentence = `unknown call of ${operation.batch.targets[index]}`
              return { call: operation.batch.payloads[index] ?? '0x', sentence, changes: [] }
            }),
          ),
        })),
      )
      const printer = createPrinter(options.output)
      if (options.output === 'json') return printer.result({ operations: described })
      for (const { id, state, due, calls } of described)
        process.stdout.write(
          `${cleanLines(
            [
              `${id}  ${state}${due ? `, due ${due}` : ''}`,
              ...calls.flatMap(({ sentence, changes }) => [
                `  ${sentence}`,
                ...changes.map(({ value, before, after }) => `    ${value}: ${before} -> ${after}`),
              ]),
            ].join('\n'),
          )}\n`,
        )
      if (described.length === 0) printer.note('No operation waits.')
    })
}

function stepCommand(step: 'execute' | 'cancel', description: string): Command {
  return createAdminCommand(step, description, `ats admin timelock ${step} 0x…`)
    .argument('<id>', 'id of the operation')
    .action((id: string, options: AdminOptions) =>
      runPlans(options, async (context, sender) => {
        const { planNextStep, planStep } = await import('../operator/admin-plan.ts')
        const operation = (await readOperations(context)).find(each => each.id === id.toLowerCase())
        if (operation === undefined || operation.state === 'not scheduled')
          throw new Failure('refused', `The timelock has no operation ${id} that was scheduled.`, {
            code: 'OPERATION_UNKNOWN',
            remedy: 'List them: ats admin timelock list --all',
          })
        const plan = await planNextStep(context, sender, operation)
        if (step === 'execute') return { plans: [plan], next: [] }
        return {
          plans: [{ ...plan, ...(await planStep(context, sender, operation, 'cancel')), note: undefined }],
          next: [],
        }
      }),
    )
}

async function readOperations({ chain, client, timelock }: AdminContext): Promise<Operation[]> {
  if (timelock === undefined)
    throw new Failure('refused', 'The admin of the contracts is no timelock.', {
      code: 'NO_TIMELOCK',
      remedy: 'Its key calls the contracts directly.',
    })
  const { scheduledOperations } = await import('../operator/timelock.ts')
  return scheduledOperations(chain, client, timelock)
}
