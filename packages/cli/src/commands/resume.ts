import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { createPrinter } from '../output/printer.ts'
import { removePending } from '../trading/pending.ts'
import { resumePending } from '../trading/resume-pending.ts'
import { createServiceCommand, type ServiceOptions } from './options.ts'

/** `ats resume`: finds out what became of messages that were signed and posted without a known outcome. */
export function resumeCommand(): Command {
  return createServiceCommand(
    'resume',
    'find out what became of signed messages whose outcome is unknown; never trades twice',
    'ats resume',
  )
    .argument('[digest]', 'digest of one message')
    .action(resume)
}

async function resume(digest: string | undefined, service: ServiceOptions, command: Command): Promise<void> {
  const home = homeFolder()
  const isUrlGiven = command.getOptionValueSource('url') === 'cli'
  const resumed = await resumePending({ home, service, isUrlGiven, digest })
  createPrinter(service.output).result({ messages: resumed.map(({ row }) => row) })
  // Forgets only printed outcomes, so an interrupted run can be repeated.
  for (const { row, isKnown } of resumed) if (isKnown) removePending(home, `${row.digest}`)
  const failure = resumed.find(message => message.failure)?.failure
  if (failure) throw failure
}
