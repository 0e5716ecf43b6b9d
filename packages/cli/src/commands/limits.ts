import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { limitsPath, readLimits } from '../limits/limits-file.ts'
import { spentToday } from '../limits/purchase-log.ts'
import { createPrinter } from '../output/printer.ts'
import { createCommand, type ServiceOptions } from './options.ts'

/** `ats limits`: shows the limits file and what it leaves for today. There is no command that writes it. */
export function limitsCommand(): Command {
  return createCommand(
    'limits',
    'show the limits of this machine; edit limits.json to change them',
    'ats limits',
  ).action(({ output }: ServiceOptions) => {
    const home = homeFolder()
    const limits = readLimits(home)
    const spent = spentToday(home)
    const { perDayUsdc } = limits ?? {}
    const left = perDayUsdc === undefined ? undefined : perDayUsdc > spent ? perDayUsdc - spent : 0n
    createPrinter(output).result({
      file: limitsPath(home),
      exists: limits !== undefined,
      perTradeUsdc: digitsOf(limits?.perTradeUsdc),
      perDayUsdc: digitsOf(perDayUsdc),
      spentInLast24HoursUsdc: digitsOf(spent),
      leftUsdc: digitsOf(left),
      symbols: limits?.symbols ?? null,
      until: limits?.until?.toISOString() ?? null,
    })
  })
}

const digitsOf = (amount: bigint | undefined) => (amount === undefined ? null : `${amount}`)
