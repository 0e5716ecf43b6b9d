import { createClient } from '@agent-trading-service/client'
import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { toFailure } from '../output/to-failure.ts'
import { addressOf } from '../trading/create-reader.ts'
import { createNonceFiles } from '../trading/nonce-files.ts'
import { isFinal, listPending, type PendingMessage, removePending } from '../trading/pending.ts'
import { createServiceCommand, type ServiceOptions } from './options.ts'

/** `ats resume`: finds out what became of messages that were signed and posted without a known outcome. */
export function resumeCommand(): Command {
  return createServiceCommand(
    'resume',
    'find out what became of signed messages whose outcome is unknown; never trades twice',
    'ats resume',
  )
    .argument('[digest]', 'digest of one message')
    .action(resume)
}

/** What became of a message. `isKnown` says that its file is not needed any more. */
type Outcome = { row: Record<string, unknown>; isKnown: boolean; failure?: Failure }
type Resuming = { home: string; service: ServiceOptions; isUrlGiven: boolean }

async function resume(digest: string | undefined, service: ServiceOptions, command: Command): Promise<void> {
  const home = homeFolder()
  const resuming = { home, service, isUrlGiven: command.getOptionValueSource('url') === 'cli' }
  const outcomes: Outcome[] = []
  for (const message of listPending(home, digest)) outcomes.push(await outcomeOf(message, resuming))
  createPrinter(service.output).result({ messages: outcomes.map(({ row }) => row) })
  // Only what was printed is forgotten: whoever interrupts this can run it again.
  for (const { row, isKnown } of outcomes) if (isKnown) removePending(home, `${row.digest}`)
  const failure = outcomes.find(outcome => outcome.failure)?.failure
  if (failure) throw failure
}

/** Asks the service that the message was posted to. Another one may refuse what is still valid there. */
async function outcomeOf(message: PendingMessage, { home, service, isUrlGiven }: Resuming): Promise<Outcome> {
  const { digest } = message
  try {
    if ('failure' in message) throw message.failure
    const url = message.url ?? service.url
    if (isUrlGiven && !isSameUrl(url, service.url)) throw otherService(digest, url)
    const client = createClient({ ...addressOf({ ...service, url }), nonceStore: createNonceFiles(home) })
    const receipt = await withProgress(`Resuming ${digest}`, client.resume(message.submission))
    return { row: { digest, outcome: 'executed', ...receipt }, isKnown: true }
  } catch (error) {
    if (isFinal(error)) {
      const row = { digest, outcome: 'refused', code: error.code, error: error.message }
      // A file of an earlier version names no service, so this refusal may be another one's.
      return { row, isKnown: 'url' in message && message.url !== undefined }
    }
    const failure = toFailure(error)
    const { code, remedy } = failure.facts
    return { row: { digest, outcome: 'unknown', code, error: failure.message, remedy }, isKnown: false, failure }
  }
}

const isSameUrl = (one: string, other: string) => one.replace(/\/+$/, '') === other.replace(/\/+$/, '')

const otherService = (digest: string, url: string) =>
  new Failure('usage', `The message ${digest} was posted to ${url}, so it was not sent to another service.`, {
    code: 'OTHER_SERVICE',
    remedy: 'Leave --url out: each message is resumed where it was posted.',
  })
