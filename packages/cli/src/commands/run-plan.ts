import { checkFigure } from '@agent-trading-service/protocol/check-figures'
import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { canAsk } from '../output/ask.ts'
import { printableJson } from '../output/clean.ts'
import { createPrinter, type Printer, toJson } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { renderTable } from '../output/table.ts'
import { openTrader } from '../trading/open-trader.ts'
import { assertAllowed, carryOut, describePlan, type Plan } from '../trading/plan.ts'
import type { Trader } from '../trading/trader.ts'
import type { SigningOptions } from './options.ts'

/** Plans something, shows it, asks on a terminal, signs, submits and prints the outcome. */
export async function runPlan<O extends SigningOptions>(
  command: Command,
  options: O,
  planWith: (trader: Trader, options: O) => Promise<Plan>,
): Promise<void> {
  const home = homeFolder()
  const printer = createPrinter(options.output)
  const trader = await openTrader(home, options)
  const plan = await withProgress('Requesting and checking a quote', planWith(trader, options))
  if (options.dryRun) return showPlan(home, printer, plan)
  assertAllowed(home, plan)
  printer.note(describePlan(plan))
  if (!options.yes && canAsk()) {
    const { askToContinue } = await import('../output/ask.ts')
    await askToContinue('Sign and send?')
  }
  await plan.unlock()
  printer.result(await withProgress(`${commandPath(command)}: signed, waiting for the block`, carryOut(home, plan)))
}

/** Prints what would be signed. Throws like the command itself would, so that scripts see it in the exit code. */
function showPlan(home: string, printer: Printer, plan: Plan): void {
  const { title, signer, terms, said, checks, warnings, typedData, digest } = plan
  const refusal = refusalOf(() => assertAllowed(home, plan))
  if (printer.format === 'json')
    printer.result({
      dryRun: true,
      allowed: refusal === undefined,
      title,
      signer,
      terms,
      said,
      checks,
      warnings,
      digest,
      typedData,
    })
  else {
    const rows = checks.map(({ rule, pass, limit, used, after }) => ({
      rule,
      pass,
      limit: checkFigure(rule, limit) ?? null,
      used: checkFigure(rule, used) ?? null,
      after: checkFigure(rule, after) ?? null,
    }))
    const table = rows.length > 0 ? `\n\n${renderTable(toJson(rows))}` : ''
    process.stdout.write(`${describePlan(plan)}${table}\n\nTyped data:\n${printableJson(toJson(typedData), 2)}\n`)
  }
  printer.note('Dry run: nothing was signed.')
  if (refusal) throw refusal
}

function refusalOf(action: () => void): Failure | undefined {
  try {
    action()
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

const commandPath = (command: Command): string =>
  command.parent ? `${commandPath(command.parent)} ${command.name()}` : command.name()
