import { type Command, Option } from 'commander'
import type { Address, Hex } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner } from '../keys/signer.ts'
import type { AdminContext } from '../operator/admin-context.ts'
import type { CallGroup, GroupPlan } from '../operator/admin-plan.ts'
import { canAsk } from '../output/ask.ts'
import { createPrinter, type OutputFormat } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { withDeploymentOptions } from './doctor.ts'
import { createCommand, digits, keyOption, passwordFileOption } from './options.ts'

/** What every command takes that changes a deployment. */
export type AdminOptions = {
  vars?: string
  env?: string
  wrangler: string
  deployment?: string
  rpc?: string
  key?: string
  passwordFile?: string
  from?: string
  salt?: Hex
  delay?: bigint
  dryRun?: boolean
  yes?: boolean
  output: OutputFormat
}

/** Creates a command that reads a deployment. */
export const createDeploymentCommand = (...args: Parameters<typeof createCommand>): Command =>
  withDeploymentOptions(createCommand(...args))

/** Creates a command that changes a deployment. */
export const createAdminCommand = (...args: Parameters<typeof createCommand>): Command =>
  createDeploymentCommand(...args)
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .option('--from <address>', 'plan for this account, such as a multisig, and send nothing')
    .addOption(
      new Option('--salt <bytes32>', 'tells an operation of the timelock from an earlier one').argParser(bytes32),
    )
    .addOption(
      new Option('--delay <seconds>', "longer than the timelock's least delay").argParser(text => BigInt(digits(text))),
    )
    .option('--dry-run', 'show what would be sent, and send nothing')
    .option('-y, --yes', 'do not ask before sending')

/** What a command does: its calls, in groups, and what is to do after it. */
export type AdminTask = { groups: CallGroup[]; next?: string[] }

/** Plans what a command does, shows it, asks on a terminal, sends it and prints the outcome. */
export async function runAdmin(
  options: AdminOptions,
  taskOf: (context: AdminContext, sender: Address) => Promise<AdminTask> | AdminTask,
): Promise<void> {
  await runPlans(options, async (context, sender) => {
    const { planGroups } = await import('../operator/send-plan.ts')
    const { groups, next = [] } = await taskOf(context, sender)
    const salted = groups.map(group => ({ ...group, ...extras(options) }))
    return { plans: await planGroups(context, sender, salted), next }
  })
}

const extras = ({ salt, delay }: AdminOptions) => ({
  ...(salt !== undefined && { salt }),
  ...(delay !== undefined && { leastDelay: delay }),
})

/** As `runAdmin`, for plans that are not made of calls. */
export async function runPlans(
  options: AdminOptions,
  plansOf: (context: AdminContext, sender: Address) => Promise<{ plans: GroupPlan[]; next: string[] }>,
): Promise<void> {
  const [{ openAdmin }, { assertSendable, sendPlans }, { describePlans, presentPlan }, { toAddress }] =
    await Promise.all([
      import('../operator/admin-context.ts'),
      import('../operator/send-plan.ts'),
      import('../operator/present-plan.ts'),
      import('../operator/admin-commands.ts'),
    ])
  const printer = createPrinter(options.output)
  const signer = options.from === undefined ? openSigner(homeFolder(), options) : undefined
  const sender = signer?.address ?? toAddress(options.from ?? '')
  const context = await openAdmin(options)
  const { plans, next } = await withProgress('Reading the chain', plansOf(context, sender))
  if (options.dryRun || signer === undefined) {
    const refused = plans.find(({ refusal }) => refusal)?.refusal
    if (options.output === 'json')
      printer.result({ dryRun: true, allowed: refused === undefined, sender, plans: plans.map(presentPlan), next })
    else process.stdout.write(`${describePlans(sender, plans, true)}\n`)
    printer.note('Dry run: nothing was sent.')
    if (refused) throw refused
    return
  }
  assertSendable(plans)
  printer.note(describePlans(sender, plans, false))
  const count = plans.reduce((sum, { transactions }) => sum + transactions.length, 0)
  if (count > 0 && !options.yes) await confirm(count)
  const sent = count === 0 ? [] : await withProgress('Sending', sendPlans(context, await signer.unlock(), plans))
  printer.result(options.output === 'json' ? { sender, plans: plans.map(presentPlan), sent, next } : { sent })
  for (const line of next) printer.note(line)
}

async function confirm(count: number): Promise<void> {
  if (!canAsk())
    throw new Failure('usage', 'Nobody can be asked whether to send this.', {
      code: 'CONFIRMATION_MISSING',
      remedy: 'Pass --yes to send it, or --dry-run to see it.',
    })
  const { askToContinue } = await import('../output/ask.ts')
  await askToContinue(count === 1 ? 'Send this transaction?' : `Send these ${count} transactions?`)
}

function bytes32(text: string): Hex {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return text as Hex
  throw new Failure('usage', `The salt ${text} is not 0x and 64 hex digits.`, { code: 'INVALID_REQUEST' })
}
