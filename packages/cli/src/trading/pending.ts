import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentTradingError, type Submission } from '@agent-trading-service/client'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'
import { isSameDeployment } from './pins.ts'

// A signed message is stored before it is posted and removed once its outcome is known, so that a crash or a lost
// connection never leads to a second signature. It holds no key.

const pendingFolder = (home: string) => join(home, 'pending')
const pathOf = (home: string, digest: string) => join(pendingFolder(home), `${digest}.json`)

const schema = z.looseObject({
  /** The service that the message was posted to; absent in files of earlier versions. */
  url: z.string().optional(),
  kind: z.string(),
  method: z.enum(['POST', 'PUT']),
  path: z.string().startsWith('/'),
  body: z.record(z.string(), z.unknown()),
  digest: z.string(),
})

/** A stored message, or the failure that says why its file cannot be read. */
export type PendingMessage = { digest: string } & (
  | { submission: Submission; url: string | undefined }
  | { failure: Failure }
)

/** Stores a message that is about to be posted. Throws `PENDING_MESSAGE` like `assertNonePending`. */
export function storePending(home: string, url: string, submission: Submission): void {
  const signatory = signatoryOf(submission)
  if (signatory) assertNonePending(home, url, signatory, submission.digest)
  makePrivateFolder(home)
  makePrivateFolder(pendingFolder(home))
  const path = pathOf(home, submission.digest)
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify({ ...submission, url })}\n`, { mode: 0o600 })
  renameSync(temporary, path)
}

export function removePending(home: string, digest: string): void {
  rmSync(pathOf(home, digest), { force: true })
}

/** Returns the stored messages whose outcome is not known; with a digest, only that one. Throws `NOT_PENDING`. */
export function listPending(home: string, digest?: string): PendingMessage[] {
  const folder = pendingFolder(home)
  const files = existsSync(folder) ? readdirSync(folder).filter(file => file.endsWith('.json')) : []
  const selected = files.filter(file => digest === undefined || file === `${digest.toLowerCase()}.json`)
  if (digest !== undefined && selected.length === 0)
    throw new Failure('usage', `There is no message ${digest} whose outcome is unknown.`, {
      code: 'NOT_PENDING',
      remedy: 'Run `ats outcome` without a digest for all of them, or `ats intent` for one that the service knows.',
    })
  return selected.map(file => readPending(join(folder, file), file.slice(0, -'.json'.length)))
}

/** Who is about to sign: the signer of an agent's trades, or a key that registers. */
export type Signatory = { agentId: string } | { signer: string }

/**
 * Throws `PENDING_MESSAGE` while an earlier message of the same agent or key at the same deployment has no known
 * outcome: another one could be a second trade or a second fee. Messages of owners do not wait, so that an agent can
 * always be stopped. `digest` is that of the message itself, which may be posted again.
 */
export function assertNonePending(home: string, service: string, signatory: Signatory, digest?: string): void {
  for (const message of listPending(home)) {
    if ('failure' in message) throw message.failure
    const { submission, url } = message
    if (message.digest === digest || !isSame(signatoryOf(submission), signatory)) continue
    if (url !== undefined && !isSameDeployment(home, url, service)) continue
    const what = submission.kind === 'register' ? 'registration' : 'trade'
    throw new Failure(
      'unknown',
      `The ${what} ${message.digest} was posted${url ? ` to ${url}` : ''} and its outcome is not known, so no other one was sent.`,
      {
        code: 'PENDING_MESSAGE',
        remedy: {
          command: 'Run `ats outcome` until it says what became of it; then decide whether you still need this.',
          tool: 'Call `resume` until it says what became of that message; then decide whether you still need this.',
        },
        details: { digest: message.digest },
      },
    )
  }
}

/** Returns who signed a message; undefined for messages that wait for no other one. */
function signatoryOf({ kind, path, body }: Submission): Signatory | undefined {
  if (kind === 'register') return { signer: `${body.signer}` }
  const [, agentId] = /^\/agents\/(\d+)\//.exec(path) ?? []
  return kind === 'intent' && agentId !== undefined ? { agentId } : undefined
}

function isSame(one: Signatory | undefined, other: Signatory): boolean {
  if (one === undefined) return false
  if ('signer' in one) return 'signer' in other && one.signer.toLowerCase() === other.signer.toLowerCase()
  return 'agentId' in other && BigInt(one.agentId) === BigInt(other.agentId)
}

function readPending(path: string, digest: string): PendingMessage {
  try {
    const { url, ...submission } = schema.parse(JSON.parse(readFileSync(path, 'utf8')))
    if (submission.digest === digest) return { digest, url, submission: submission as unknown as Submission }
  } catch {
    // Told below: the other messages go on.
  }
  const failure = new Failure('unknown', `The file ${path} is not a stored message.`, {
    code: 'PENDING_DAMAGED',
    remedy:
      'Look the message up by its digest, which is the name of the file, with `ats intent`; then delete the file.',
  })
  return { digest, failure }
}

/** Tells whether an error says that the message was not executed, and will not be. */
export const isFinal = (error: unknown): error is AgentTradingError =>
  error instanceof AgentTradingError &&
  !error.retryable &&
  ['validation', 'not-found', 'refused', 'payment'].includes(error.kind)
