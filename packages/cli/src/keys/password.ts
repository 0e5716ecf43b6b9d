import { Failure } from '../failure.ts'
import { readTextFile } from '../text-file.ts'

export type PasswordSource = { passwordFile?: string | undefined }

/**
 * Returns the password from --password-file, ATS_PASSWORD_FILE, ATS_PASSWORD or a prompt. Throws `PASSWORD_MISSING`
 * without a terminal to ask on.
 */
export async function readPassword(
  { passwordFile = process.env.ATS_PASSWORD_FILE }: PasswordSource,
  { name, isNew = false, canAsk = true }: { name: string; isNew?: boolean; canAsk?: boolean },
): Promise<string> {
  const given = passwordFile ? readPasswordFile(passwordFile) : process.env.ATS_PASSWORD
  if (given) return given
  if (!canAsk || !process.stdin.isTTY || !process.stderr.isTTY)
    throw new Failure('key', `The key ${name} needs its password.`, {
      code: 'PASSWORD_MISSING',
      remedy: 'Set ATS_PASSWORD or ATS_PASSWORD_FILE, or pass --password-file.',
    })
  const { askPassword } = await import('../output/ask.ts')
  const password = await askPassword(isNew ? `New password for the key ${name}` : `Password of the key ${name}`)
  if (isNew && (await askPassword('The same again')) !== password)
    throw new Failure('key', 'The two passwords differ.', { code: 'PASSWORDS_DIFFER', remedy: 'Start again.' })
  return password
}

/** Reads the first line, so that a file may end with a newline. */
function readPasswordFile(path: string): string {
  const line = textOf(path).split(/\r?\n/, 1)[0] ?? ''
  if (line !== '') return line
  throw new Failure('key', `The first line of ${path} is empty; the password is expected there.`, {
    code: 'PASSWORD_MISSING',
    remedy: 'Write the password into the first line.',
  })
}

function textOf(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    if (error instanceof Failure) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new Failure('key', `The password file ${path} cannot be read (${code}).`, {
      code: 'PASSWORD_MISSING',
      remedy: 'Check the path and its mode.',
    })
  }
}
