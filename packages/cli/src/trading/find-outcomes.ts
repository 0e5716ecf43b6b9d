import { createClient } from '@agent-trading-service/client'
import { Failure } from '../failure.ts'
import { withProgress } from '../output/progress.ts'
import { toFailure } from '../output/to-failure.ts'
import { addressOf, type ServiceAddress } from './create-reader.ts'
import { createNonceFiles } from './nonce-files.ts'
import { isFinal, listPending, type PendingMessage } from './pending.ts'

/** What became of a message. `isKnown` says that its file is not needed any more. */
export type MessageOutcome = { row: Record<string, unknown>; isKnown: boolean; failure?: Failure }

type Search = {
  home: string
  /** For messages that name no service. */
  service: ServiceAddress
  /** Whether the user has named this service, so that no other one is used. */
  isUrlGiven: boolean
  digest?: string | undefined
}

/**
 * Posts signed messages without a known outcome again; with a digest, only that one. Nothing is signed or executed
 * twice.
 */
export async function findOutcomes({ digest, ...search }: Search): Promise<MessageOutcome[]> {
  const outcomes: MessageOutcome[] = []
  for (const message of listPending(search.home, digest)) outcomes.push(await outcomeOf(message, search))
  return outcomes
}

/** Asks the service that the message was posted to. Another one may refuse what is still valid there. */
async function outcomeOf(message: PendingMessage, { home, service, isUrlGiven }: Search): Promise<MessageOutcome> {
  const { digest } = message
  try {
    if ('failure' in message) throw message.failure
    const url = message.url ?? service.url
    if (isUrlGiven && !isSameUrl(url, service.url)) throw otherService(digest, url)
    const client = createClient({ ...addressOf({ ...service, url }), nonceStore: createNonceFiles(home) })
    const receipt = await withProgress(`Finding the outcome of ${digest}`, client.resume(message.submission))
    return { row: { digest, outcome: 'executed', ...receipt }, isKnown: true }
  } catch (error) {
    if (isFinal(error)) {
      const row = { digest, outcome: 'refused', code: error.code, error: error.message }
      // A file of an earlier version names no service, so this refusal may be another one's.
      return { row, isKnown: isUrlGiven || ('url' in message && message.url !== undefined) }
    }
    const failure = toFailure(error)
    const { message: sentence, facts, commandRemedy: remedy } = failure
    return { row: { digest, outcome: 'unknown', code: facts.code, error: sentence, remedy }, isKnown: false, failure }
  }
}

const isSameUrl = (one: string, other: string) => one.replace(/\/+$/, '') === other.replace(/\/+$/, '')

const otherService = (digest: string, url: string) =>
  new Failure('usage', `The message ${digest} was posted to ${url}, so it was not sent to another service.`, {
    code: 'OTHER_SERVICE',
    remedy: 'Leave --url out: each message is looked up where it was posted.',
  })
