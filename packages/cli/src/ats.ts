import { type Command, CommanderError } from 'commander'
import { exitCodes, Failure } from './failure.ts'
import { createPrinter } from './output/printer.ts'
import { toFailure } from './output/to-failure.ts'
import { createProgram } from './program.ts'

// The entry of `ats`. Whatever is thrown ends as one message on stderr and an exit code: no stack and no values.

/** Wrong usage and unexpected errors may contain what should not be there, such as a key. */
const redact = (text: string) => text.replace(/\b(0x)?[0-9a-f]{64}\b/gi, '(64 hex characters)')

function fail(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage
    return
  }
  const known = toFailure(error)
  // An unexpected message comes from anywhere.
  const failure = known.kind === 'internal' ? new Failure('internal', redact(known.message), known.facts) : known
  createPrinter(wantsJson() ? 'json' : 'table').failure(failure)
  process.exitCode = exitCodes[failure.kind]
}

/** Which format errors have is decided from the raw arguments, because parsing may be what failed. */
function wantsJson(): boolean {
  const { argv, env } = process
  const option = argv.findIndex(each => each === '-o' || each === '--output')
  if (option > 0) return argv[option + 1] === 'json'
  return argv.includes('-ojson') || argv.includes('--output=json') || env.ATS_OUTPUT === 'json'
}

function configure(command: Command): void {
  command.exitOverride().configureOutput({ outputError: (text, write) => write(redact(text)) })
  for (const inner of command.commands) configure(inner)
}

process.on('uncaughtException', error => {
  fail(error)
  process.exit()
})
// A reader such as `head` may close the pipe.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', error => process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : exitCodes.internal))
process.on('SIGINT', () => process.exit(130))

try {
  const program = createProgram()
  configure(program)
  if (process.argv.length <= 2) program.help({ error: true })
  await program.parseAsync()
} catch (error) {
  fail(error)
}
