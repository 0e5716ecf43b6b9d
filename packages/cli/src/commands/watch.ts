import { eventTime } from '@agent-trading-service/protocol/event-time'
import type { Command } from 'commander'
import { eventText } from '../output/event-text.ts'
import { createPrinter } from '../output/printer.ts'
import { createReader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, integer, type ServiceOptions } from './options.ts'

type WatchOptions = ServiceOptions & {
  agent?: string
  vault?: string
  prices?: string
  after?: string
  count?: number
}

/** `ats watch`: prints events as they happen, NDJSON with `-o json`. */
export function watchCommand(): Command {
  return createServiceCommand(
    'watch',
    'print events as they happen: of one agent, one vault or everything',
    'ats watch --agent 1 -o json',
    'ats watch --prices NVDA,AAPL',
  )
    .addOption(agentOption())
    .option('--vault <vault>', 'slug or address of a vault')
    .option('--prices <symbols>', 'also print the posted prices of these tokens; alone, print nothing else')
    .option('--after <id>', 'resume after this event id')
    .option('--count <n>', 'stop after that many events', integer(1, 1_000_000))
    .action(watch)
}

async function watch({
  url,
  timeout,
  output,
  agent,
  vault,
  prices,
  after,
  count = Number.POSITIVE_INFINITY,
}: WatchOptions): Promise<void> {
  const printer = createPrinter(output)
  const events = createReader({ url, timeout }).events({
    ...(agent !== undefined && { agentId: agent }),
    ...(vault !== undefined && { vault }),
    ...(prices !== undefined && { symbols: prices.split(',') }),
    ...(after !== undefined && { lastEventId: after }),
  })
  printer.note('Waiting for events; Ctrl-C ends it.')
  let printed = 0
  for await (const event of events) {
    const { id, type, data } = event
    printer.item(
      { id, type, ...eventTime(type, data, Date.now() / 1_000), data },
      `${id.padEnd(14)} ${eventText(type, data as Record<string, unknown>)}`,
    )
    printed++
    if (printed >= count) return
  }
}
