import { type Command, InvalidArgumentError } from 'commander'
import type { ExitRule } from '../trading/trader.ts'
import {
  agentOption,
  createGroup,
  createSigningCommand,
  digits,
  integer,
  type SigningOptions,
  usdcAmount,
} from './options.ts'
import { runPlan } from './run-plan.ts'

type IntentOptions = SigningOptions & { agent?: string }
type PurchaseOptions = IntentOptions & { maxSlippageBps?: number; exits?: ExitRule[] }

const EXITS_TEXT = 'exit ladder as triggerBps:exitBps pairs, such as -800:10000,1500:10000'
const quotable: [name: string, build: (name: string) => Command][] = [
  ['open', openCommand],
  ['add', addCommand],
  ['reduce', reduceCommand],
  ['close', closeCommand],
  ['ladder', ladderCommand],
]

/** `ats open`, `add`, `reduce`, `close` and `ladder`, and `ats quote` with the same five, which signs nothing. */
export function tradeCommands(): Command[] {
  const quote = createGroup('quote', 'show the checks and what would be signed', 'ats quote open NVDA 250 --agent 1')
  // `ats quote open …` is `ats open … --dry-run`.
  const quotes = quotable.map(([name, build]) => {
    const command = build(name)
    command.setOptionValue('dryRun', true)
    return command.description(`quote: ${command.description()}`)
  })
  for (const each of quotes) quote.addCommand(each)
  return [quote, ...quotable.map(([name, build]) => build(name))]
}

function intentCommand(name: string, description: string, example: string): Command {
  return createSigningCommand(name, description, example).addOption(agentOption())
}

function openCommand(name: string): Command {
  return slippage(intentCommand(name, 'open a position', 'ats open NVDA 250 --exits -800:10000,1500:10000 --agent 1'))
    .argument('<symbol>', 'token to buy')
    .argument('<usdc>', 'amount in USDC', usdcAmount)
    .option('--exits <ladder>', `${EXITS_TEXT}, which is also the default`, exitLadder)
    .action((symbol: string, usdcAmount: string, options: PurchaseOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, exits, maxSlippageBps }) =>
        trader.planTrade({ agentId: agent, symbol, usdcAmount, exits, maxSlippageBps }),
      ),
    )
}

function addCommand(name: string): Command {
  return slippage(intentCommand(name, 'add to a position', 'ats add 3 50 --agent 1'))
    .argument('<position>', 'id of the position', digits)
    .argument('<usdc>', 'amount in USDC', usdcAmount)
    .action((positionId: string, usdcAmount: string, options: PurchaseOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, maxSlippageBps }) =>
        trader.planTrade({ agentId: agent, positionId, usdcAmount, maxSlippageBps }),
      ),
    )
}

function reduceCommand(name: string): Command {
  return intentCommand(name, 'sell a share of a position', 'ats reduce 3 5000 --agent 1')
    .argument('<position>', 'id of the position', digits)
    .argument('<bps>', 'share of the remaining tokens in basis points; 10000 closes', integer(1, 10_000))
    .action((positionId: string, exitBps: number, options: IntentOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) => trader.planReduce({ agentId: agent, positionId, exitBps })),
    )
}

function closeCommand(name: string): Command {
  return intentCommand(name, 'close a position', 'ats close 3 --agent 1')
    .argument('<position>', 'id of the position', digits)
    .action((positionId: string, options: IntentOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) =>
        trader.planReduce({ agentId: agent, positionId, exitBps: 10_000 }),
      ),
    )
}

function ladderCommand(name: string): Command {
  return intentCommand(
    name,
    'replace the pending exit rules of a position',
    'ats ladder 3 --exits -500:10000,2000:10000 --agent 1',
  )
    .argument('<position>', 'id of the position', digits)
    .requiredOption('--exits <ladder>', EXITS_TEXT, exitLadder)
    .action((positionId: string, options: IntentOptions & { exits: ExitRule[] }, command: Command) =>
      runPlan(command, options, (trader, { agent, exits }) => trader.planLadder({ agentId: agent, positionId, exits })),
    )
}

const slippage = (command: Command) =>
  command.option('--max-slippage-bps <bps>', 'largest shortfall against the oracle value', integer(0, 10_000))

/** Parses `-800:10000,1500:5000`. */
export function exitLadder(text: string): ExitRule[] {
  return text.split(',').map(pair => {
    const [, trigger, exit] = /^\s*(-?\d{1,6}):(\d{1,5})\s*$/.exec(pair) ?? []
    if (trigger === undefined || exit === undefined)
      throw new InvalidArgumentError('Pairs of triggerBps:exitBps are expected, such as -800:10000,1500:10000.')
    return { triggerBps: Number(trigger), exitBps: Number(exit) }
  })
}
