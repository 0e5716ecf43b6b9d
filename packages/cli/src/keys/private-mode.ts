import { mkdirSync, type Stats, statSync } from 'node:fs'
import { Failure } from '../failure.ts'

const OTHERS = 0o077
// Windows has no modes; its profile folders are private by default.
const hasModes = process.platform !== 'win32'

/** Creates a folder that only its owner can read. Throws if it exists and others can read it. */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  assertPrivate(path)
}

/** Throws unless only the owner can read and write a file or a folder. */
export function assertPrivate(path: string): void {
  const stats = statSync(path)
  if (!hasModes) return
  assertOwn(path, stats)
  if ((stats.mode & OTHERS) === 0) return
  const expected = stats.isDirectory() ? '700' : '600'
  throw new Failure(
    'key',
    `${path} has mode ${modeOf(stats)}, so others can read it; ${expected} or less is required.`,
    { code: 'MODE_TOO_WIDE', remedy: `Run: chmod ${expected} ${path}` },
  )
}

/** Throws if anyone other than the owner can write a file. */
export function assertWrittenByOwner(path: string): void {
  const stats = statSync(path)
  if (!hasModes) return
  assertOwn(path, stats)
  if ((stats.mode & 0o022) === 0) return
  throw new Failure('limits', `${path} has mode ${modeOf(stats)}, so others can change it.`, {
    code: 'MODE_TOO_WIDE',
    remedy: `Run: chmod go-w ${path}`,
  })
}

function assertOwn(path: string, { uid }: Stats): void {
  const user = process.getuid?.()
  if (user === undefined || uid === user) return
  throw new Failure('key', `${path} belongs to the user with id ${uid}, not to you (${user}).`, {
    code: 'FOREIGN_FILE',
    remedy: 'Use a folder of your own: set ATS_HOME.',
  })
}

const modeOf = ({ mode }: Stats) => (mode & 0o777).toString(8).padStart(3, '0')
