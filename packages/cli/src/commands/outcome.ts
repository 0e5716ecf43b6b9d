import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { createPrinter } from '../output/printer.ts'
import { findOutcomes } from '../trading/find-outcomes.ts'
import { removePending } from '../trading/pending.ts'
import { createServiceCommand, type ServiceOptions } from './options.ts'

/** `ats outcome`: finds out what became of messages that were signed and posted without a known outcome. */
export function outcomeCommand(name = 'outcome'): Command {
  return createServiceCommand(
    name,
    'find out what became of signed messages whose outcome is unknown; never trades twice',
    'ats outcome',
  )
    .argument('[digest]', 'digest of one message')
    .action(printOutcomes)
}

async function printOutcomes(digest: string | undefined, service: ServiceOptions, command: Command): Promise<void> {
  const home = homeFolder()
  const isUrlGiven = command.getOptionValueSource('url') === 'cli'
  const found = await findOutcomes({ home, service, isUrlGiven, digest })
  createPrinter(service.output).result({ messages: found.map(({ row }) => row) })
  // Forgets only printed outcomes, so an interrupted run can be repeated.
  for (const { row, isKnown } of found) if (isKnown) removePending(home, `${row.digest}`)
  const failure = found.find(message => message.failure)?.failure
  if (failure) throw failure
}
