import { type Command, InvalidArgumentError } from 'commander'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { valueText } from '../output/units.ts'
import { createReader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, type ServiceOptions } from './options.ts'
import { agentMissing } from './reads.ts'

type WhatIfOptions = ServiceOptions & { agent?: string; intents?: WhatIfRequest['intents'] }
type WhatIfRequest = Parameters<ReturnType<ReturnType<typeof createReader>['agent']>['whatIf']>[0]

/** `ats what-if`: what would happen at other prices and after intents. Signs and sends nothing. */
export const whatIfCommand = (): Command =>
  createServiceCommand(
    'what-if',
    'show what would happen at other prices and after intents, and sign nothing',
    'ats what-if NVDA=110 --agent 1',
    `ats what-if --intents '[{"kind":"reduce","positionId":"3","exitBps":5000}]' --agent 1`,
  )
    .argument('[prices...]', 'US dollars by symbol, such as NVDA=110', toPrice)
    .addOption(agentOption())
    .option('--intents <json>', 'bodies of intents without deadline, nonce and signature, in their order', parseJson)
    .action(async (prices: Record<string, string> = {}, { agent, intents, output, ...service }: WhatIfOptions) => {
      if (agent === undefined) throw agentMissing()
      const request = { prices, ...(intents && { intents }) }
      const shown = await withProgress('what if', createReader(service).agent(agent).whatIf(request))
      createPrinter(output, { of: 'whatIf' }).result(output === 'json' ? shown : forTable(shown))
    })

type Outcome = Awaited<ReturnType<ReturnType<ReturnType<typeof createReader>['agent']>['whatIf']>>

/**
 * Returns an outcome as tables show it: what the intents and exits do, and the figures before and after side by side.
 */
export function forTable({ before, after, agentId: _, ...done }: Outcome) {
  const figures: [figure: string, of: (risk: Outcome['before']) => string | number][] = [
    ['equityUsdc', risk => risk.equity.currentUsdc],
    ['unrealizedPnlUsdc', risk => risk.derived.unrealizedPnlUsdc],
    ['dailyRealizedUsdc', risk => risk.pnl.dailyRealizedUsdc],
    ['dailyLossUsedUsdc', risk => risk.derived.dailyLossUsedUsdc],
    ['allocationUsedUsdc', risk => risk.allocation.used],
    ['allocationLeftUsdc', risk => risk.allocation.available],
    ['currentDrawdownBps', risk => risk.equity.currentDrawdownBps],
    ['openPositions', risk => risk.positions.openCount],
  ]
  const risk = figures.map(([figure, of]) => ({
    figure,
    before: valueText(of(before), figure),
    after: valueText(of(after), figure),
  }))
  return { ...done, risk }
}

function toPrice(text: string, earlier: Record<string, string> = {}): Record<string, string> {
  const [, symbol, price] = /^([^=\s]+)=([0-9]+(?:\.[0-9]+)?)$/.exec(text) ?? []
  if (symbol === undefined || price === undefined)
    throw new InvalidArgumentError('A symbol and its price in US dollars are expected, such as NVDA=110.')
  return { ...earlier, [symbol]: price }
}

function parseJson(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    throw new InvalidArgumentError('A list in JSON is expected.')
  }
}
