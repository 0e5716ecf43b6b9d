import { percentToBps, stopPercentToBps, wholeExits } from '@agent-trading-service/protocol/percent'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../failure.ts'
import type { ExitRule } from '../trading/trader.ts'
import { agentOption, createGroup, createSigningCommand, integer, type SigningOptions, usdcAmount } from './options.ts'
import { runPlan } from './run-plan.ts'

type IntentOptions = SigningOptions & { agent?: string; note?: string }
export type LadderOptions = { exits?: ExitRule[]; stop?: number; take?: number }
type PurchaseOptions = IntentOptions & LadderOptions & { maxSlippageBps?: number; maxLoss?: string; maxAmount?: string }

const POSITION_TEXT = 'id of the position, or the symbol that it holds'
const AMOUNT_TEXT = 'amount in USDC; leave it out with --max-loss'
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

export function intentCommand(name: string, description: string, ...examples: string[]): Command {
  return createSigningCommand(name, description, ...examples)
    .addOption(agentOption())
    .option('--note <text>', 'why you trade, for everybody to read: at most 280 characters; not signed')
}

function openCommand(name: string): Command {
  return ladder(
    slippage(
      intentCommand(
        name,
        'open a position; without a ladder it stops at -8 % and takes at 15 %',
        'ats open NVDA 250 --stop 8% --take 15% --agent 1',
        'ats open NVDA 250 --exits -800:10000,1500:10000 --agent 1',
        'ats open NVDA --max-loss 20 --stop 8% --agent 1',
      ),
    ),
  )
    .argument('<symbol>', 'token to buy')
    .argument('[usdc]', AMOUNT_TEXT, usdcAmount)
    .addOption(maxLoss())
    .addOption(maxAmount())
    .action((symbol: string, usdcAmount: string | undefined, options: PurchaseOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, maxSlippageBps, maxLoss, maxAmount, note }) =>
        trader.planTrade({
          agentId: agent,
          symbol,
          usdcAmount,
          maxLossUsdc: maxLoss,
          maxUsdcAmount: maxAmount,
          exits: ladderOf(options),
          maxSlippageBps,
          note,
        }),
      ),
    )
}

function addCommand(name: string): Command {
  return slippage(
    intentCommand(
      name,
      'add to a position',
      'ats add NVDA 50 --agent 1',
      'ats add NVDA --max-loss 20 --max-amount 100 --agent 1',
    ),
  )
    .argument('<position>', POSITION_TEXT)
    .argument('[usdc]', AMOUNT_TEXT, usdcAmount)
    .addOption(maxLoss())
    .addOption(maxAmount())
    .action((positionId: string, usdcAmount: string | undefined, options: PurchaseOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, maxSlippageBps, maxLoss, maxAmount, note }) =>
        trader.planTrade({
          agentId: agent,
          positionId,
          usdcAmount,
          maxLossUsdc: maxLoss,
          maxUsdcAmount: maxAmount,
          maxSlippageBps,
          note,
        }),
      ),
    )
}

function reduceCommand(name: string): Command {
  return intentCommand(name, 'sell a share of a position', 'ats reduce NVDA 50% --agent 1')
    .argument('<position>', POSITION_TEXT)
    .argument('<share>', 'share of the remaining tokens, such as 50%, or in basis points; 100% closes', share)
    .action((positionId: string, exitBps: number, options: IntentOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, note }) =>
        trader.planReduce({ agentId: agent, positionId, exitBps, note }),
      ),
    )
}

function closeCommand(name: string): Command {
  return intentCommand(name, 'close a position', 'ats close NVDA --agent 1')
    .argument('<position>', POSITION_TEXT)
    .action((positionId: string, options: IntentOptions, command: Command) =>
      runPlan(command, options, (trader, { agent, note }) =>
        trader.planReduce({ agentId: agent, positionId, exitBps: 10_000, note }),
      ),
    )
}

function ladderCommand(name: string): Command {
  const command = intentCommand(
    name,
    'replace the pending exit rules of a position',
    'ats ladder NVDA --stop 5% --take 20% --agent 1',
    'ats ladder 3 --exits -500:10000,2000:10000 --agent 1',
  )
  return ladder(command)
    .argument('<position>', POSITION_TEXT)
    .action((positionId: string, options: IntentOptions & LadderOptions) =>
      runPlan(command, options, (trader, { agent, note }) => {
        const exits = ladderOf(options)
        if (exits === undefined)
          throw new Failure('usage', 'There is no ladder to sign.', {
            code: 'LADDER_MISSING',
            remedy: 'Pass --stop, --take or both, or a whole ladder as --exits.',
          })
        return trader.planLadder({ agentId: agent, positionId, exits, note })
      }),
    )
}

const maxLoss = () =>
  new Option('--max-loss <usdc>', 'buy as much that the stop-losses of the position lose at most this').argParser(
    usdcAmount,
  )

const maxAmount = () =>
  new Option(
    '--max-amount <usdc>',
    'with --max-loss: the most to buy for; adding to a position needs it, or --rpc',
  ).argParser(usdcAmount)

export const ladder = (command: Command) =>
  command
    .addOption(new Option('--exits <ladder>', EXITS_TEXT).argParser(exitLadder).conflicts(['stop', 'take']))
    .option('--stop <percent>', 'stop-loss: sell everything at this loss, such as 8%', stopPercent)
    .option('--take <percent>', 'take-profit: sell everything at this profit, such as 15%', percent)

/** Returns the ladder that the options name; undefined if they name none. */
export function ladderOf({ exits, stop, take }: LadderOptions): ExitRule[] | undefined {
  if (exits !== undefined || (stop === undefined && take === undefined)) return exits
  return wholeExits(stop, take)
}

export const slippage = (command: Command) =>
  command.option('--max-slippage-bps <bps>', 'largest shortfall against the oracle value', integer(0, 10_000))

/** Parses a percentage such as `8%` or `-7.5 %`, with or without its sign, into positive basis points. */
export const percent = (text: string) =>
  parsePercent(text, percentToBps, 'A percentage is expected, such as 8% or 7.5%.')

const stopPercent = (text: string) =>
  parsePercent(text, stopPercentToBps, 'A percentage below 100% is expected, such as 8% or 7.5%.')

function parsePercent(text: string, toBps: typeof percentToBps, problem: string): number {
  const [, unsigned = ''] = /^[-+]?(.*%)$/.exec(text.trim()) ?? []
  const bps = toBps(unsigned)
  if (bps !== undefined) return bps
  throw new InvalidArgumentError(problem)
}

/** Parses a share: a percentage up to 100%, or basis points. */
export function share(text: string): number {
  const bps = text.trim().endsWith('%') ? percent(text) : integer(1, 10_000)(text)
  if (bps <= 10_000) return bps
  throw new InvalidArgumentError('A share up to 100% is expected.')
}

/** Parses `-800:10000,1500:5000`. */
export function exitLadder(text: string): ExitRule[] {
  return text.split(',').map(pair => {
    const [, trigger, exit] = /^\s*(-?\d{1,6}):(\d{1,5})\s*$/.exec(pair) ?? []
    if (trigger === undefined || exit === undefined)
      throw new InvalidArgumentError('Pairs of triggerBps:exitBps are expected, such as -800:10000,1500:10000.')
    return { triggerBps: Number(trigger), exitBps: Number(exit) }
  })
}
