import { mkdirSync, type Stats, statSync } from 'node:fs'
import { Failure } from '../failure.ts'

const OTHERS = 0o077
// Windows has no modes; its profile folders are private by default.
const hasModes = process.platform !== 'win32'

/** What to do where modes and owners cannot be changed, as under /mnt/c of WSL or in a volume of Docker. */
const copyElsewhere =
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell expands it.
  'mkdir -m 700 ~/ats-home && cp -R ${ATS_HOME:-~/.config/ats}/. ~/ats-home && chmod -R go-rwx ~/ats-home && export ATS_HOME=~/ats-home'

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
    { code: 'MODE_TOO_WIDE', remedy: withCopy(`chmod ${expected} ${path}`) },
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
    remedy: withCopy(`chmod go-w ${path}`),
  })
}

function assertOwn(path: string, { uid }: Stats): void {
  const user = process.getuid?.()
  if (user === undefined || uid === user) return
  throw new Failure('key', `${path} belongs to the user with id ${uid}, not to you (${user}).`, {
    code: 'FOREIGN_FILE',
    remedy: `Copy the files to a folder of your own: \`${copyElsewhere}\``,
  })
}

const withCopy = (command: string) =>
  `Run \`${command}\`. If the mode stays (WSL, Docker), copy the files to a folder that keeps modes: \`${copyElsewhere}\``

const modeOf = ({ mode }: Stats) => (mode & 0o777).toString(8).padStart(3, '0')
