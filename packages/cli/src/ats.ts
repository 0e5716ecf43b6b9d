import { exitCodes } from './failure.ts'
import { printFailure, runProgram } from './run-program.ts'

// The entry of `ats`.

const args = process.argv.slice(2)
process.on('uncaughtException', error => {
  process.exit(printFailure(error, args))
})
// A reader such as `head` may close the pipe.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', error => process.exit((error as NodeJS.ErrnoException).code === 'EPIPE' ? 0 : exitCodes.internal))
process.on('SIGINT', () => process.exit(130))

const exitCode = await runProgram(args)
if (exitCode !== 0) process.exitCode = exitCode
