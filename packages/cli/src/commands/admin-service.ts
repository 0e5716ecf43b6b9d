import { type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'
import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { type AdminOptions, createDeploymentCommand } from './admin-run.ts'
import { createCommand, createGroup } from './options.ts'

type ServiceAdminOptions = AdminOptions & { url?: string }

/** What `ats admin` does with the service: `replay`, `intake`, `lane`, `webhooks`, `journal`, `backup`, `restore`. */
export const serviceCommands = (): Command[] => [
  replayCommand(),
  intakeCommand(),
  laneCommand(),
  webhooksCommand(),
  journalCommand(),
  backupCommand(),
  restoreCommand(),
]

/** Creates a command that sends OPERATOR_SECRET to the service of a deployment. */
const createOperatorCommand = (...args: Parameters<typeof createCommand>): Command =>
  createDeploymentCommand(...args).addOption(
    new Option('--url <url>', 'base URL of the service; BASE_URL by default').env('ATS_URL'),
  )

function replayCommand(): Command {
  return createOperatorCommand(
    'replay',
    'drop the index and the event log, and read both from the chain again; needs OPERATOR_SECRET',
    'ats admin replay --vars .dev.vars --url https://…',
  )
    .option('--dry-run', 'show how far the index is, and drop nothing')
    .option('-y, --yes', 'do not ask before dropping')
    .action(replay)
}

async function replay(options: ServiceAdminOptions): Promise<void> {
  const { url, request } = await connectToOperator(options)
  const printer = createPrinter(options.output)
  if (options.dryRun) {
    printer.result({ dryRun: true, index: await request('/operator/index', 'GET') })
    return printer.note('Dry run: nothing was dropped.')
  }
  if (!options.yes) {
    const { askToContinue, canAsk } = await import('../output/ask.ts')
    if (!canAsk())
      throw new Failure('usage', 'Nobody can be asked whether to drop the index.', {
        code: 'CONFIRMATION_MISSING',
        remedy: 'Pass --yes, or --dry-run to see how far the index is.',
      })
    await askToContinue(`Drop the index and the event log of ${url}, and read them again?`)
  }
  printer.result(await withProgress('Dropping the index', request('/operator/index/replay', 'POST')))
}

function intakeCommand(): Command {
  const kinds = new Argument('<kinds...>', 'what to change').choices(Object.keys(intakeKinds))
  return createGroup(
    'intake',
    'close and open kinds of intake without a deploy; needs OPERATOR_SECRET',
    "ats admin intake close buys --reason 'The venue is being repaired.'",
  )
    .addCommand(createOperatorCommand('list', 'show which kinds are open', 'ats admin intake list').action(listIntake))
    .addCommand(
      createOperatorCommand(
        'close',
        'refuse kinds of requests from now on',
        "ats admin intake close buys --reason 'The venue is being repaired.'",
      )
        .addArgument(kinds)
        .requiredOption('--reason <text>', 'what callers read in the refusal')
        .option('--dry-run', 'show which kinds are open, and change nothing')
        .action((names: IntakeKind[], options: ServiceAdminOptions & { reason: string }) =>
          changeIntake(names, { open: false, reason: options.reason }, options),
        ),
    )
    .addCommand(
      createOperatorCommand('open', 'accept kinds of requests again', 'ats admin intake open buys')
        .addArgument(kinds)
        .option('--dry-run', 'show which kinds are open, and change nothing')
        .action((names: IntakeKind[], options: ServiceAdminOptions) => changeIntake(names, { open: true }, options)),
    )
}

async function listIntake(options: ServiceAdminOptions): Promise<void> {
  const { request } = await connectToOperator(options)
  createPrinter(options.output).result(await request('/operator/intake', 'GET'))
}

type IntakeChange = { open: true } | { open: false; reason: string }

async function changeIntake(names: IntakeKind[], change: IntakeChange, options: ServiceAdminOptions): Promise<void> {
  if (options.dryRun) {
    await listIntake(options)
    return createPrinter(options.output).note('Dry run: nothing was changed.')
  }
  const { request } = await connectToOperator(options)
  const body = Object.fromEntries(names.map(name => [name, change]))
  createPrinter(options.output).result(await request('/operator/intake', 'PUT', body))
}

function webhooksCommand(): Command {
  const example = "ats admin webhooks free 7 --reason 'It was not used.'"
  return createGroup('webhooks', 'list and free the places for webhooks; needs OPERATOR_SECRET', example)
    .addCommand(
      createOperatorCommand(
        'list',
        'show the agents that take most places, or the webhooks of one',
        'ats admin webhooks list 7',
      )
        .argument('[agentId]', 'id of the agent', agentIdOf)
        .action(listWebhooks),
    )
    .addCommand(
      createOperatorCommand('free', 'disable the webhooks of an agent, so that others can use their places', example)
        .argument('<agentId>', 'id of the agent', agentIdOf)
        .requiredOption('--reason <text>', 'what the owner of the agent reads')
        .option('--dry-run', 'show its webhooks, and disable none')
        .action(freeWebhooks),
    )
}

async function listWebhooks(agentId: string | undefined, options: ServiceAdminOptions): Promise<void> {
  const { request } = await connectToOperator(options)
  const path = agentId === undefined ? '/operator/webhooks' : `/operator/webhooks/${agentId}`
  createPrinter(options.output).result(await request(path, 'GET'))
}

async function freeWebhooks(agentId: string, options: ServiceAdminOptions & { reason: string }): Promise<void> {
  const printer = createPrinter(options.output)
  if (options.dryRun) {
    await listWebhooks(agentId, options)
    return printer.note('Dry run: nothing was disabled.')
  }
  const { request } = await connectToOperator(options)
  printer.result(await request(`/operator/webhooks/${agentId}/free`, 'POST', { reason: options.reason }))
}

function agentIdOf(text: string): string {
  if (/^[1-9]\d{0,14}$/.test(text)) return text
  throw new InvalidArgumentError('Expected the id of an agent.')
}

function laneCommand(): Command {
  const example = 'ats admin lane resume 0x…'
  return createGroup(
    'lane',
    'let a lane send again after others used its key; needs OPERATOR_SECRET',
    example,
  ).addCommand(
    createOperatorCommand('resume', 'accept intents again at once: stop the second copy of the service first', example)
      .argument('<account>', 'the account of the lane, as /health/ready shows it', accountOf)
      .action(async (account: string, options: ServiceAdminOptions) => {
        const { request } = await connectToOperator(options)
        createPrinter(options.output).result(await request(`/operator/lanes/${account}/resume`, 'POST'))
      }),
  )
}

function accountOf(text: string): string {
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return text
  throw new InvalidArgumentError('Expected 0x and 40 hex digits.')
}

/**
 * Returns the URL of a deployment's service, and a way to send requests with its secret. Throws `VARIABLES_MISSING`.
 */
async function connectToOperator(options: ServiceAdminOptions) {
  const { readVariables } = await import('../operator/variables.ts')
  const { OPERATOR_SECRET, BASE_URL } = readVariables(options)
  const url = (options.url ?? BASE_URL)?.replace(/\/$/, '')
  if (!url || !OPERATOR_SECRET)
    throw new Failure('usage', `${url ? 'OPERATOR_SECRET' : 'The URL of the service'} is not set.`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Pass --url, and --vars with OPERATOR_SECRET, or set it in the environment.',
    })
  const headers = { authorization: `Bearer ${OPERATOR_SECRET}`, 'content-type': 'application/json' }
  const request = (path: string, method: string, body?: object) =>
    callOperator(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  return { url, request }
}

async function callOperator(url: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(url, init).catch(() => undefined)
  const body = (await response?.json().catch(() => undefined)) as { error?: string; code?: string; remedy?: string }
  if (response?.ok) return body
  throw new Failure(response ? 'refused' : 'unavailable', body?.error ?? `The service at ${url} does not respond.`, {
    code: body?.code ?? 'UNREACHABLE',
    remedy: body?.remedy ?? 'Check the URL.',
  })
}

function journalCommand(): Command {
  return createCommand(
    'journal',
    'list the lanes of a service on this machine, or show what they have journalled about an intent',
    'ats admin journal 0x…',
  )
    .argument('[digest]', 'digest of the intent', digestOf)
    .addOption(storageOption().default('.devnet/worker'))
    .action(async (digest: string | undefined, { output, storage }: AdminOptions & { storage: string }) => {
      const { readJournals, readLanes } = await import('../operator/journal.ts')
      const read = digest === undefined ? readLanes(storage) : readJournals(storage, digest)
      createPrinter(output).result(await read)
    })
}

const storageOption = () => new Option('--storage <folder>', 'storage of the service').env('ATS_STORAGE')

function backupCommand(): Command {
  return createCommand(
    'backup',
    'copy the objects and the database of a service on this machine, which may be running',
    'ats admin backup /var/backups/agent-trading --storage /var/lib/agent-trading',
  )
    .argument('<folder>', 'where to; it must not exist')
    .addOption(storageOption().makeOptionMandatory())
    .action(async (folder: string, { output, storage }: AdminOptions & { storage: string }) => {
      const { backUp } = await import('../operator/backup.ts')
      createPrinter(output).result(await backUp(storage, folder))
    })
}

function restoreCommand(): Command {
  return createCommand(
    'restore',
    'write a backup into an empty storage folder, before the service starts',
    'ats admin restore /var/backups/agent-trading --storage /var/lib/agent-trading',
  )
    .argument('<folder>', 'the backup')
    .addOption(storageOption().makeOptionMandatory())
    .action(async (folder: string, { output, storage }: AdminOptions & { storage: string }) => {
      const { restore } = await import('../operator/backup.ts')
      createPrinter(output).result(await restore(folder, storage))
    })
}

function digestOf(text: string): string {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Expected 0x and 64 hex digits.')
}
