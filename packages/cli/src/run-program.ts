import { type Command, CommanderError } from 'commander'
import { exitCodes, Failure } from './failure.ts'
import { createPrinter } from './output/printer.ts'
import { toFailure } from './output/to-failure.ts'
import { createProgram } from './program.ts'

// Whatever a command throws ends as one message on stderr and an exit code: no stack and no values.

/** Wrong usage and unexpected errors may contain what should not be there, such as a key. */
const redact = (text: string) => text.replace(/\b(0x)?[0-9a-f]{64}\b/gi, '(64 hex characters)')

/** Runs `ats` with arguments, and prints what it throws. Returns the exit code. */
export async function runProgram(args: readonly string[]): Promise<number> {
  try {
    const program = createProgram()
    configure(program, wantsJson(args))
    if (args.length === 0) program.help({ error: true })
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    return printFailure(error, args)
  }
}

/** Prints an error for the caller. Returns its exit code. */
export function printFailure(error: unknown, args: readonly string[]): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    if (wantsJson(args)) createPrinter('json').failure(usageFailure(error))
    return exitCodes.usage
  }
  const known = toFailure(error)
  // An unexpected message comes from anywhere.
  const failure = known.kind === 'internal' ? new Failure('internal', redact(known.message), known.facts) : known
  createPrinter(wantsJson(args) ? 'json' : 'table').failure(failure)
  return exitCodes[failure.kind]
}

/** Which format errors have is decided from the raw arguments, because parsing may be what failed. */
function wantsJson(args: readonly string[]): boolean {
  const option = args.findIndex(each => each === '-o' || each === '--output')
  if (option >= 0) return args[option + 1] === 'json'
  return args.includes('-ojson') || args.includes('--output=json') || process.env.ATS_OUTPUT === 'json'
}

function configure(command: Command, isJson: boolean): void {
  const outputError = (text: string, write: (text: string) => void) => (isJson ? undefined : write(redact(text)))
  command.exitOverride().configureOutput({ outputError })
  for (const inner of command.commands) configure(inner, isJson)
}

/** Returns what commander says about the command line, which it words as `error: …` with a suggestion. */
function usageFailure({ message }: CommanderError): Failure {
  const [error = '', suggestion] = redact(message)
    .replace(/^error: /, '')
    .split('\n')
  return new Failure('usage', error, { code: 'USAGE', remedy: suggestion || 'See the command with --help.' })
}
