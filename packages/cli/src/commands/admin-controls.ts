import { Argument, type Command } from 'commander'
import type { PauseTarget } from '../operator/admin-commands.ts'
import { type AdminOptions, createAdminCommand, runAdmin } from './admin-run.ts'
import { createGroup, digits } from './options.ts'

const TARGETS: PauseTarget[] = ['registry', 'trading', 'liquidity', 'everything']

/** `ats admin pause`, `resume`, `agent` and `force-close`: what guardians and operators do at once. */
export const controlCommands = (): Command[] => [
  pauseCommand('pause', 'stop registrations, trading, or deposits and redemptions', true),
  pauseCommand('resume', 'open again what was paused', false),
  createGroup('agent', 'suspend an agent, or let it trade again', 'ats admin agent suspend 7')
    .addCommand(agentCommand('suspend', 'stop an agent: it neither buys nor sells'))
    .addCommand(agentCommand('resume', 'let a suspended agent trade again')),
  forceCloseCommand(),
]

function pauseCommand(name: 'pause' | 'resume', description: string, paused: boolean): Command {
  return createAdminCommand(name, description, `ats admin ${name} trading genesis`, `ats admin ${name} everything`)
    .addArgument(new Argument('<what>', 'what to change').choices(TARGETS))
    .argument('[vaults...]', 'slugs of the vaults; all by default')
    .action((what: PauseTarget, vaults: string[], options: AdminOptions) =>
      runAdmin(options, async context => {
        const { pauseCalls } = await import('../operator/admin-commands.ts')
        const calls = await pauseCalls(context, what, vaults, paused)
        // Each call is a group of its own: they need roles of different contracts.
        return { groups: calls.map(call => ({ calls: [call] })) }
      }),
    )
}

function agentCommand(name: 'suspend' | 'resume', description: string): Command {
  return createAdminCommand(name, description, `ats admin agent ${name} 7`)
    .argument('<agent>', 'id of the agent', digits)
    .action((agent: string, options: AdminOptions) =>
      runAdmin(options, async context => {
        const { reinstateCall, suspendCall } = await import('../operator/admin-commands.ts')
        const call = name === 'suspend' ? suspendCall : reinstateCall
        return { groups: [{ calls: [call(context, BigInt(agent))] }] }
      }),
    )
}

function forceCloseCommand(): Command {
  return createAdminCommand('force-close', 'sell a position of an agent that is not Active', 'ats admin force-close 12')
    .argument('<position>', 'id of the position', digits)
    .action((position: string, options: AdminOptions) =>
      runAdmin(options, async context => {
        const { forceCloseCall } = await import('../operator/admin-commands.ts')
        return { groups: [{ calls: [forceCloseCall(context, BigInt(position))] }] }
      }),
    )
}
