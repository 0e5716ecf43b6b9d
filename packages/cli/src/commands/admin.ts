import type { Command } from 'commander'
import { parseUnits } from 'viem'
import { controlCommands } from './admin-controls.ts'
import { roleCommands } from './admin-roles.ts'
import { type AdminOptions, createAdminCommand, runAdmin } from './admin-run.ts'
import { serviceCommands } from './admin-service.ts'
import { timelockCommand } from './admin-timelock.ts'
import { createGroup, usdcAmount } from './options.ts'

const USDC_DECIMALS = 6

/** `ats admin`: what an operator does with the contracts and the service. */
export function adminCommand(): Command {
  const group = createGroup(
    'admin',
    'operate a deployment: roles, pauses, prices, the timelock, the index, intake; --dry-run sends nothing',
    'ats admin pause trading genesis --vars .dev.vars --key guardian',
    `ats admin call 'TradeRouter.setKeeperBounty(7, "1000000")' --deployment deployments/421614.json --rpc https://… --dry-run`,
  )
  for (const command of [
    ...roleCommands(),
    ...controlCommands(),
    depositCommand(),
    priceCommand(),
    callCommand(),
    migrateOracleCommand(),
    migrateRouterCommand(),
    timelockCommand(),
    ...serviceCommands(),
  ])
    group.addCommand(command)
  return group
}

function depositCommand(): Command {
  return createAdminCommand('deposit', 'deposit USDC of the key into a vault', 'ats admin deposit genesis 10000')
    .argument('<vault>', 'slug of the vault')
    .argument('<usdc>', 'amount in USDC', usdcAmount)
    .option('--receiver <address>', 'who gets the shares; the key by default')
    .action((slug: string, amount: string, options: AdminOptions & { receiver?: string }) =>
      runAdmin(options, async (context, sender) => {
        const { depositCalls, toAddress } = await import('../operator/admin-commands.ts')
        const receiver = options.receiver === undefined ? sender : toAddress(options.receiver)
        const usdc = parseUnits(amount, USDC_DECIMALS)
        return { groups: [{ calls: await depositCalls(context, { slug, usdc, sender, receiver }) }] }
      }),
    )
}

function priceCommand(): Command {
  return createAdminCommand('price', 'post prices to the oracle', 'ats admin price NVDA=180.25 AAPL=271.4')
    .argument('<prices...>', 'SYMBOL=USD, with at most 8 decimals')
    .option('--force', 'without the bound on moves, with the key of the forcer')
    .action((prices: string[], options: AdminOptions & { force?: boolean }) =>
      runAdmin(options, async context => {
        const { priceCalls } = await import('../operator/admin-commands.ts')
        return { groups: [{ calls: priceCalls(context, prices, options.force === true) }] }
      }),
    )
}

function callCommand(): Command {
  return createAdminCommand(
    'call',
    'make calls of contracts and vaults; several are one batch of the timelock',
    `ats admin call 'TradeRouter.setKeeperBounty(7, "1000000")'`,
  )
    .argument(
      '<calls...>',
      'Contract.function(JSON arguments); names stand for addresses, digits in quotes for numbers',
    )
    .action((calls: string[], options: AdminOptions) =>
      runAdmin(options, async ({ book }) => {
        const { parseCall } = await import('../operator/admin-call.ts')
        return { groups: [{ calls: calls.map(text => parseCall(book, text)) }] }
      }),
    )
}

function migrateOracleCommand(): Command {
  return createAdminCommand('migrate-oracle', 'replace the price oracle', 'ats admin migrate-oracle 0x…')
    .argument('<oracle>', 'address of the new oracle, offered to the timelock')
    .action((oracle: string, options: AdminOptions) =>
      runAdmin(options, async context => {
        const { oracleMigration, toAddress } = await import('../operator/admin-commands.ts')
        return {
          groups: await oracleMigration(context, toAddress(oracle)),
          next: [`Once it is executed: name ${oracle} as PriceOracle in CONTRACTS and deploy the Worker.`],
        }
      }),
    )
}

function migrateRouterCommand(): Command {
  return createAdminCommand('migrate-router', 'replace the trade router', 'ats admin migrate-router 0x…')
    .argument('<router>', 'address of the new router, offered to the timelock, with its roles granted')
    .action((router: string, options: AdminOptions) =>
      runAdmin(options, async context => {
        const { checkRouterRoles, routerMigration, toAddress } = await import('../operator/admin-commands.ts')
        const groups = await routerMigration(context, toAddress(router))
        await checkRouterRoles(context, toAddress(router))
        return {
          groups,
          next: [
            'Pause trading before the operation is executed: ats admin pause trading',
            `Once it is executed: name ${router} as TradeRouter in CONTRACTS, with its lens and adapter, deploy the Worker, and resume.`,
          ],
        }
      }),
    )
}
