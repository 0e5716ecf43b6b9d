import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { type AdminOptions, createDeploymentCommand } from './admin-run.ts'
import { createCommand } from './options.ts'

type ServiceAdminOptions = AdminOptions & { url?: string }

/** `ats admin replay` and `journal`: what an operator does with the service. */
export const serviceCommands = (): Command[] => [replayCommand(), journalCommand()]

function replayCommand(): Command {
  return createDeploymentCommand(
    'replay',
    'drop the index and the event log, and read both from the chain again; needs OPERATOR_SECRET',
    'ats admin replay --vars .dev.vars --url https://…',
  )
    .addOption(new Option('--url <url>', 'base URL of the service; BASE_URL by default').env('ATS_URL'))
    .option('--dry-run', 'show how far the index is, and drop nothing')
    .option('-y, --yes', 'do not ask before dropping')
    .action(replay)
}

async function replay(options: ServiceAdminOptions): Promise<void> {
  const { readVariables } = await import('../operator/variables.ts')
  const { OPERATOR_SECRET, BASE_URL } = readVariables(options)
  const url = (options.url ?? BASE_URL)?.replace(/\/$/, '')
  if (!url || !OPERATOR_SECRET)
    throw new Failure('usage', `${url ? 'OPERATOR_SECRET' : 'The URL of the service'} is not set.`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Pass --url, and --vars with OPERATOR_SECRET, or set it in the environment.',
    })
  const request = (path: string, method: string) => callOperator(`${url}${path}`, method, OPERATOR_SECRET)
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

async function callOperator(url: string, method: string, secret: string): Promise<unknown> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${secret}` } }).catch(() => undefined)
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
    .addOption(
      new Option('--storage <folder>', 'storage of the Durable Objects').env('ATS_STORAGE').default('.devnet/worker'),
    )
    .action(async (digest: string | undefined, { output, storage }: AdminOptions & { storage: string }) => {
      const { readJournals, readLanes } = await import('../operator/journal.ts')
      const read = digest === undefined ? readLanes(storage) : readJournals(storage, digest)
      createPrinter(output).result(await read)
    })
}

function digestOf(text: string): string {
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Expected 0x and 64 hex digits.')
}
