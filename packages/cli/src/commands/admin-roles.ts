import type { Power } from '@agent-trading-service/protocol/roles-of-powers'
import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { type AdminOptions, createAdminCommand, createDeploymentCommand, runAdmin } from './admin-run.ts'

/** `ats admin roles`, `grant`, `revoke` and `rotate`. A power is named as in the configuration of the deployment. */
export const roleCommands = (): Command[] => [
  rolesCommand(),
  changeCommand('grant', 'give a power to an account'),
  changeCommand('revoke', 'take a power from an account'),
  rotateCommand(),
]

function rolesCommand(): Command {
  return createDeploymentCommand('roles', 'list who has which power', 'ats admin roles -o json').action(
    async (options: AdminOptions) => {
      const [{ openAdmin }, { readRoleHistory }] = await Promise.all([
        import('../operator/admin-context.ts'),
        import('../operator/role-holders.ts'),
      ])
      const { chain, client, book } = await openAdmin(options)
      const head = await client.getBlockNumber()
      const { holders } = await withProgress('Reading the grants', readRoleHistory(chain, book, head))
      createPrinter(options.output).result({
        admin: book.contracts.Timelock ?? null,
        roles: holders.map(({ power, contract, role, account }) => ({ power, contract, role, account })),
      })
    },
  )
}

function changeCommand(verb: 'grant' | 'revoke', description: string): Command {
  return createAdminCommand(verb, description, `ats admin ${verb} executors 0x…`)
    .argument('<power>', 'such as executors, guardians or operators.vaults')
    .argument('<account>', 'address')
    .action((power: string, account: string, options: AdminOptions) =>
      runAdmin(options, async context => {
        const { roleCalls, toAddress, toPower } = await import('../operator/admin-commands.ts')
        return { groups: [{ calls: roleCalls(context, verb, toPower(power), toAddress(account)) }] }
      }),
    )
}

/** The variable of the Worker whose key has the power. */
const variables: Partial<Record<Power, string>> = {
  executors: 'EXECUTOR_PRIVATE_KEY',
  relayer: 'RELAYER_PRIVATE_KEY',
  oracleUpdaters: 'ORACLE_UPDATER_PRIVATE_KEY',
}

function rotateCommand(): Command {
  return createAdminCommand(
    'rotate',
    'replace the account of a power: grant the new one, revoke the old one',
    'ats admin rotate executors --from-account 0x… --to 0x…',
  )
    .argument('<power>', 'such as executors, guardians or operators.vaults')
    .requiredOption('--from-account <address>', 'account that loses the power')
    .requiredOption('--to <address>', 'account that gets it')
    .option('--keep', 'grant only; revoke later, when nothing of the old account is pending')
    .action((given: string, options: AdminOptions & { fromAccount: string; to: string; keep?: boolean }) =>
      runAdmin(options, async context => {
        const { rotationCalls, toAddress, toPower } = await import('../operator/admin-commands.ts')
        const [power, from, to] = [toPower(given), toAddress(options.fromAccount), toAddress(options.to)]
        if (from === to)
          throw new Failure('usage', `${from} would replace itself.`, {
            code: 'NOTHING_TO_DO',
            remedy: 'Name two accounts.',
          })
        const calls = rotationCalls(context, { power, from, to, keep: options.keep === true })
        return {
          groups: [{ calls }],
          next: nextSteps(power, { from, to, env: options.env, keep: options.keep === true }),
        }
      }),
    )
}

function nextSteps(
  power: Power,
  { from, to, env, keep }: { from: string; to: string; env: string | undefined; keep: boolean },
): string[] {
  const variable = variables[power]
  const target = env === undefined ? '' : ` --env ${env}`
  const revocation = keep ? [`When nothing of ${from} is pending: ats admin revoke ${power} ${from}`] : []
  if (variable === undefined) return revocation
  return [
    `Fund ${to} for gas.`,
    `${variable}: replace the key of ${from} by that of ${to}${keep ? ', or append it' : ''}: npx wrangler secret put ${variable}${target}`,
    ...revocation,
  ]
}
