import { Argument, type Command, Option } from 'commander'
import { agentOption, createGroup, createSigningCommand, digits, type SigningOptions, usdcAmount } from './options.ts'
import { readAndPrint } from './reads.ts'
import { runPlan } from './run-plan.ts'

type OwnerOptions = SigningOptions & { agent?: string }
type MandateOptions = OwnerOptions & {
  mode?: 'trade' | 'reduceOnly' | 'stopped'
  maxTradeUsdc?: string
  maxDailyTurnoverUsdc?: string
  maxExposureUsdc?: string
  allowedTokens?: string[]
  validUntil?: string
}

/**
 * What an agent's owner signs: `ats mandate`, `stop`, `owner`, `signer`, `cancel` and `first-loss`. The owner pays no
 * gas.
 */
export function ownerCommands(): Command[] {
  return [mandateCommand(), stopCommand(), ownerCommand(), signerCommand(), cancelCommand(), firstLossCommand()]
}

const owned = (name: string, description: string, ...examples: string[]) =>
  createSigningCommand(name, description, ...examples).addOption(agentOption())

function mandateCommand(): Command {
  return owned(
    'mandate',
    'show what the owner lets the agent do; with --mode, replace it',
    'ats mandate --agent 1',
    'ats mandate --agent 1 --mode trade --max-trade-usdc 500 --allowed-tokens NVDA,AAPL',
  )
    .addOption(new Option('--mode <mode>', 'what is allowed').choices(['trade', 'reduceOnly', 'stopped']))
    .option('--max-trade-usdc <usdc>', 'largest open or add', usdcAmount)
    .option('--max-daily-turnover-usdc <usdc>', 'the most that is bought in 24 hours', usdcAmount)
    .option('--max-exposure-usdc <usdc>', 'largest cost of all open positions together', usdcAmount)
    .option('--allowed-tokens <symbols>', 'tokens that may be bought, separated by commas', list)
    .option('--valid-until <seconds>', 'last second in which the agent may buy, in Unix seconds', digits)
    .action((options: MandateOptions, command: Command) => {
      const { mode, maxTradeUsdc, maxDailyTurnoverUsdc, maxExposureUsdc, allowedTokens, validUntil } = options
      if (mode === undefined) return readAndPrint('getMandate', options, { agentId: options.agent })
      const limits = { maxTradeUsdc, maxDailyTurnoverUsdc, maxExposureUsdc, allowedTokens, validUntil }
      return runPlan(command, options, (trader, { agent }) => trader.planMandate({ agentId: agent, mode, ...limits }))
    })
}

function stopCommand(): Command {
  return owned(
    'stop',
    'stop the agent: reduceOnly stops buying, flatten also sells everything',
    'ats stop flatten --agent 1',
  )
    .addHelpText(
      'after',
      `
To let it buy again: ats mandate --agent 1 --mode trade, with the limits that it shall have. That replaces the mandate, whose
present limits \`ats mandate --agent 1\` shows. What flatten has sold stays sold.`,
    )
    .addArgument(new Argument('<action>', 'what to stop').choices(['reduceOnly', 'flatten']))
    .action((action: 'reduceOnly' | 'flatten', options: OwnerOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) => trader.planStop({ agentId: agent, action })),
    )
}

function ownerCommand(): Command {
  return createGroup('owner', 'offer an agent to a new owner, or accept one', 'ats owner offer 0x… --agent 1')
    .addCommand(
      owned(
        'offer',
        'offer the agent to a new owner; nothing changes until it accepts',
        'ats owner offer 0x… --agent 1',
      )
        .argument('<address>', 'address of the new owner; the zero address withdraws the offer')
        .action((newOwner: string, options: OwnerOptions, command: Command) =>
          runPlan(command, options, (trader, { agent }) => trader.planOffer({ agentId: agent, newOwner })),
        ),
    )
    .addCommand(
      owned('accept', 'accept an agent that is offered to the key', 'ats owner accept --new-signer 0x… --agent 1')
        .requiredOption('--new-signer <address>', 'address whose signatures trade from then on')
        .action((options: OwnerOptions & { newSigner: string }, command: Command) =>
          runPlan(command, options, (trader, { agent, newSigner }) =>
            trader.planAcceptance({ agentId: agent, newSigner }),
          ),
        ),
    )
}

function signerCommand(): Command {
  return owned('signer', 'replace the key that trades for the agent', 'ats signer 0x… --agent 1')
    .argument('<address>', 'address whose signatures trade from then on')
    .action((newSigner: string, options: OwnerOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) => trader.planSigner({ agentId: agent, newSigner })),
    )
}

function cancelCommand(): Command {
  return owned('cancel', 'make signed intents up to a nonce worthless', 'ats cancel 12 --agent 1')
    .argument('<untilNonce>', 'the first nonce that stays valid', digits)
    .action((untilNonce: string, options: OwnerOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) => trader.planCancel({ agentId: agent, untilNonce })),
    )
}

function firstLossCommand(): Command {
  return owned(
    'first-loss',
    "lock the owner's vault shares for the agent's losses; with --rpc, by default as many as the next track requires",
    'ats first-loss --agent 1 --rpc https://…',
  )
    .argument('[shares]', 'vault shares in base units (12 decimals); 0 frees them', digits)
    .action((shares: string | undefined, options: OwnerOptions, command: Command) =>
      runPlan(command, options, (trader, { agent }) => trader.planFirstLoss({ agentId: agent, shares })),
    )
}

const list = (text: string) => text.split(',').filter(item => item !== '')
