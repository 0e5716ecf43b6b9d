import type { Command } from 'commander'
import {
  createSigningCommand,
  maxFeeOption,
  ownerOption,
  ownerPasswordFileOption,
  payerOption,
  payerPasswordFileOption,
  type SigningOptions,
} from './options.ts'
import { runPlan } from './run-plan.ts'

type RegisterOptions = SigningOptions & {
  vault: string
  name: string
  metadataUri?: string
  owner?: string
  ownerPasswordFile?: string
  payer?: string
  payerPasswordFile?: string
  maxFee: string
}

/** `ats register`: registers the key as an agent and pays the fee over x402. */
export function registerCommand(): Command {
  return createSigningCommand(
    'register',
    'register an agent; pays the registration fee over x402',
    'ats register --vault genesis --name first',
    'ats register --vault genesis --name first --key trader --owner vault-key',
  )
    .option('--vault <vault>', 'slug or address of the vault', 'genesis')
    .requiredOption('--name <name>', 'name of the agent')
    .option('--metadata-uri <uri>', "URI of the agent's own description; none by default")
    .addOption(ownerOption())
    .addOption(ownerPasswordFileOption())
    .addOption(payerOption())
    .addOption(payerPasswordFileOption())
    .addOption(maxFeeOption())
    .action((options: RegisterOptions, command: Command) =>
      runPlan(command, options, (trader, { vault, name, metadataUri }) =>
        trader.planRegistration({ vault, name, metadataURI: metadataUri }),
      ),
    )
}
