import { Command } from 'commander'
import { adminCommand } from './commands/admin.ts'
import { claimCommand } from './commands/claim.ts'
import { completeCommand } from './commands/complete.ts'
import { completionCommand } from './commands/completion.ts'
import { doctorCommand } from './commands/doctor.ts'
import { examineCommand } from './commands/examine.ts'
import { keyCommand } from './commands/key.ts'
import { limitsCommand } from './commands/limits.ts'
import { mcpCommand } from './commands/mcp.ts'
import { orderCommands } from './commands/order.ts'
import { outcomeCommand } from './commands/outcome.ts'
import { ownerCommands } from './commands/owner.ts'
import { promoteCommand } from './commands/promote.ts'
import { readCommands } from './commands/reads.ts'
import { registerCommand } from './commands/register.ts'
import { rehearseCommand } from './commands/rehearse.ts'
import { signCommand } from './commands/sign.ts'
import { statusCommand } from './commands/status.ts'
import { tapeCommand } from './commands/tape.ts'
import { tradeCommands } from './commands/trade.ts'
import { vaultCommand } from './commands/vault.ts'
import { verifyCommand } from './commands/verify.ts'
import { watchCommand } from './commands/watch.ts'
import { whatIfCommand } from './commands/what-if.ts'
import { exitCodes } from './failure.ts'
import { VERSION } from './version.ts'

const EXIT_CODES = Object.entries(exitCodes)
  .map(([kind, code]) => `${code} ${kind}`)
  .join(', ')

/** Returns the program with every command. */
export function createProgram(): Command {
  const program = new Command('ats')
    .description('Trade as an agent: keys stay on this machine, and every quote is checked before it is signed.')
    .version(VERSION)
    .showSuggestionAfterError()
    // A command and its parent may have options of the same name.
    .enablePositionalOptions()
    .addHelpText(
      'after',
      `
Example:
  $ ats key new trader
  $ ats register --vault genesis --name first
  $ ats open NVDA 250 --agent 1

Environment: ATS_URL, ATS_AGENT, ATS_KEY, ATS_PASSWORD_FILE, ATS_PASSWORD, ATS_PAYER, ATS_PAYER_PASSWORD_FILE,
  ATS_OWNER, ATS_OWNER_PASSWORD_FILE, ATS_RPC, ATS_HOME, ATS_OUTPUT, ATS_TIMEOUT.
Exit codes: 0 success, ${EXIT_CODES}.`,
    )
  const groups: [heading: string, commands: Command[]][] = [
    ['Keys:', [keyCommand(), limitsCommand()]],
    [
      'Trading:',
      [
        registerCommand(),
        statusCommand(),
        ...tradeCommands(),
        ...orderCommands(),
        whatIfCommand(),
        outcomeCommand(),
        signCommand(),
        promoteCommand(),
      ],
    ],
    ['Owners:', ownerCommands()],
    ['Depositors:', [vaultCommand()]],
    ['Live:', [watchCommand()]],
    ['Rehearsal:', [rehearseCommand(), examineCommand(), claimCommand(), tapeCommand()]],
    ['Tools:', [mcpCommand(), verifyCommand(), completionCommand()]],
    ['Operators:', [doctorCommand(), adminCommand()]],
    ['Reads:', readCommands()],
  ]
  for (const [heading, commands] of groups)
    for (const command of commands) program.addCommand(command.helpGroup(heading))
  program.addCommand(completeCommand(), { hidden: true })
  // Its former name, which did not undo `ats stop`.
  program.addCommand(outcomeCommand('resume'), { hidden: true })
  return program
}
