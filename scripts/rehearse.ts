import { writeFileSync } from 'node:fs'
import { createRehearseCommand, type RehearseOptions } from '../packages/cli/src/commands/rehearse.ts'
import { toFailure } from '../packages/cli/src/output/to-failure.ts'
import { type Program, programOf } from '../rehearsal/agent-under-test.ts'
import { passes, reportJson } from '../rehearsal/report.ts'
import { reportPage } from '../rehearsal/report-page.ts'
import { parseRequirement } from '../rehearsal/requirement.ts'
import { refuseUnwritable, runRehearsal } from '../rehearsal/run-rehearsal.ts'
import { summaryOf } from '../rehearsal/summary.ts'

// `npm run rehearse -- --market gbm -- node agent.mjs`, and what `ats rehearse` runs in a clone. Exits with 1 if the
// bar is not met or an agent's program fails, with 2 if the rehearsal cannot be played.

/** Returns the programs under test: the one after `--`, and one for each `--agent`. */
function programsOf([command, ...args]: string[], { agent }: RehearseOptions): Program[] {
  const named = agent.map(line => ({ name: line, command: 'sh', args: ['-c', line] }))
  return command === undefined ? named : [programOf([command, ...args]), ...named]
}

async function rehearse(program: string[], options: RehearseOptions): Promise<void> {
  // Before anything starts, so that what is written wrong costs nothing.
  refuseUnwritable([options.report, options.json])
  const conditions = options.require === undefined ? [] : parseRequirement(options.require)
  const { report, market } = await runRehearsal(programsOf(program, options), options, conditions)
  console.log(summaryOf(report))
  if (options.report !== undefined) writeFileSync(options.report, reportPage(report, market))
  if (options.json !== undefined) writeFileSync(options.json, reportJson(report))
  process.exitCode = passes(report) ? 0 : 1
}

try {
  await createRehearseCommand(rehearse)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .parseAsync(process.argv.slice(2), { from: 'user' })
} catch (error) {
  const { kind, message, commandRemedy } = toFailure(error)
  console.error(kind === 'internal' ? message : `${message} ${commandRemedy ?? ''}`)
  process.exitCode = 2
}
