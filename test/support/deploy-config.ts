import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Address } from 'viem'
import type { Devnet } from '../../devnet/index.ts'

const example = join(import.meta.dirname, '../../scripts/deploy.example.json')

/** Returns the accounts that operate a second suite on a devnet, each with one power. */
export function operatorsOf({ deployment: { accounts } }: Devnet) {
  const [registryOperator, allocations, tokens, router, operator, forcer, newExecutor, deployer] = accounts.agents
  if (!registryOperator || !allocations || !tokens || !router || !operator || !forcer || !newExecutor || !deployer)
    throw new Error('the devnet has too few accounts')
  const { admin: proposer, operator: guardian, executor, relayer, oracleUpdater: updater, keeper } = accounts
  const { depositor, payer, treasury, priceSetter: secondGuardian } = accounts
  return {
    proposer,
    guardian,
    secondGuardian,
    executor,
    newExecutor,
    relayer,
    updater,
    forcer,
    keeper,
    registryOperator,
    allocations,
    tokens,
    router,
    operator,
    depositor,
    payer,
    treasury,
    deployer,
  }
}

/** Returns the example's configuration with the accounts, the USDC and the NVDA pool of a devnet. */
export function deployConfigOf(devnet: Devnet): string {
  const config = JSON.parse(readFileSync(example, 'utf8'))
  const { contracts, tokens } = devnet.deployment
  const holders = operatorsOf(devnet)
  const one = (name: keyof typeof holders): Address[] => [holders[name].address]
  return JSON.stringify({
    ...config,
    chainId: devnet.chainId,
    usdc: contracts.USDC,
    identityRegistry: contracts.ERC8004IdentityRegistry,
    uniswap: { factory: contracts.UniswapV3Factory, quoter: contracts.QuoterV2 },
    roles: {
      timelock: { ...config.roles.timelock, proposers: one('proposer') },
      guardians: [...one('guardian'), ...one('secondGuardian')],
      treasury: holders.treasury.address,
      relayer: holders.relayer.address,
      operators: {
        agentRegistry: one('registryOperator'),
        allocationManager: one('allocations'),
        tokenRegistry: one('tokens'),
        tradeRouter: one('router'),
        vaults: one('operator'),
      },
      registrars: [],
      executors: one('executor'),
      oracleUpdaters: one('updater'),
      oracleForcers: one('forcer'),
    },
    tokens: [
      {
        ...config.tokens[0],
        address: tokens.NVDA,
        fee: 500,
        description: { ...config.tokens[0].description, issuer: contracts.StockIssuer },
      },
    ],
  })
}
