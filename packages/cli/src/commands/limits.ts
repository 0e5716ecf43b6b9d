import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { describeLimits } from '../limits/describe-limits.ts'
import { createPrinter } from '../output/printer.ts'
import { createCommand, type ServiceOptions } from './options.ts'

/** `ats limits`: shows the limits file and what it leaves for today. There is no command that writes it. */
export function limitsCommand(): Command {
  return createCommand(
    'limits',
    'show the limits of this machine; edit limits.json to change them',
    'ats limits',
  ).action(({ output }: ServiceOptions) => createPrinter(output).result(describeLimits(homeFolder())))
}
