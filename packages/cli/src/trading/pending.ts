import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentTradingError, type Submission } from '@agent-trading-service/client'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'

// A signed message is stored before it is posted and removed once its outcome is known, so that a crash or a lost
// connection never leads to a second signature. It holds no key.

const pendingFolder = (home: string) => join(home, 'pending')
const pathOf = (home: string, digest: string) => join(pendingFolder(home), `${digest}.json`)

export function storePending(home: string, submission: Submission): void {
  makePrivateFolder(home)
  makePrivateFolder(pendingFolder(home))
  writeFileSync(pathOf(home, submission.digest), `${JSON.stringify(submission)}\n`, { mode: 0o600 })
}

export function removePending(home: string, digest: string): void {
  rmSync(pathOf(home, digest), { force: true })
}

/** Returns the stored messages whose outcome is not known; with a digest, only that one. Throws `NOT_PENDING`. */
export function listPending(home: string, digest?: string): Submission[] {
  const folder = pendingFolder(home)
  const files = existsSync(folder) ? readdirSync(folder).filter(file => file.endsWith('.json')) : []
  const selected = files.filter(file => digest === undefined || file === `${digest.toLowerCase()}.json`)
  if (digest !== undefined && selected.length === 0)
    throw new Failure('usage', `There is no message ${digest} whose outcome is unknown.`, {
      code: 'NOT_PENDING',
      remedy: 'Run `ats resume` without a digest for all of them, or `ats intent` for one that the service knows.',
    })
  return selected.map(file => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Submission)
}

/** Tells whether an error says that the message was not executed, and will not be. */
export const isFinal = (error: unknown): error is AgentTradingError =>
  error instanceof AgentTradingError &&
  !error.retryable &&
  ['validation', 'not-found', 'refused', 'payment'].includes(error.kind)
