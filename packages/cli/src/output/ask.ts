import { openSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import { confirm, isCancel, password } from '@clack/prompts'
import { Failure } from '../failure.ts'

// Prompts go to stderr: stdout carries results only.
const output = process.stderr

/** Asks for a password, which is not shown. Throws if the user cancels. */
export async function askPassword(message: string): Promise<string> {
  const given = await password({ message, output, validate: value => (value ? undefined : 'must not be empty') })
  if (isCancel(given)) throw new Failure('declined', 'Cancelled.')
  return given
}

/** Asks yes or no. Throws if the user says no. */
export async function askToContinue(message: string): Promise<void> {
  const given = await confirm({ message, output, initialValue: false })
  if (given !== true) throw new Failure('declined', 'Cancelled: nothing was signed.')
}

/** Tells whether a user can be asked. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true

/** Asks yes or no on the terminal, where standard input is a pipe. Does not ask without a terminal. */
export async function askOnTerminal(message: string): Promise<void> {
  const input = process.stderr.isTTY === true ? openTerminal() : undefined
  if (input === undefined) return
  try {
    const given = await confirm({ message, output, input, initialValue: false })
    if (given !== true) throw new Failure('declined', 'Cancelled: nothing was signed.')
  } finally {
    input.destroy()
  }
}

function openTerminal(): ReadStream | undefined {
  try {
    return new ReadStream(openSync('/dev/tty', 'r'))
  } catch {
    return undefined
  }
}
