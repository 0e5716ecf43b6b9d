import { type Address, type Client, encodeFunctionData, type Hex, keccak256, toBytes, zeroHash } from 'viem'
import { multicall, readContract } from 'viem/actions'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import type { Controls } from '../../devnet/controls.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import type { Devnet } from '../../devnet/index.ts'
import { pipelinedSender } from '../../devnet/sender.ts'
import { oracleMigration, routerMigration } from '../../packages/cli/src/operator/admin-commands.ts'
import type { AdminContext } from '../../packages/cli/src/operator/admin-context.ts'

// A second oracle and a second router of a deployment, and the operator's own commands that replace one by the other.

/** The contracts that a migration replaces. */
export type Replaceable = Record<'PriceOracle' | 'TradeRouter' | 'TradeRouterLens', Address>

const roleHash = (name: string): Hex => keccak256(toBytes(name))

/**
 * Deploys and configures a second oracle and a second router as the first ones are, and offers them to the timelock.
 */
export async function deploySuccessors({ client, deployment, setMining }: Devnet): Promise<Replaceable> {
  const { accounts, contracts, tokens } = deployment
  const { Timelock, TradePolicy, OrderBook } = contracts as Record<string, Address>
  if (!Timelock || !TradePolicy || !OrderBook) throw new Error('The deployment lacks the contracts of the extension.')
  const assets = Object.values(tokens)
  const ofAssets = <name extends 'assetConfig' | 'secondOpinionOf'>(functionName: name) =>
    multicall(
      client as Client,
      {
        allowFailure: false,
        contracts: assets.map(token => ({
          address: contracts.PriceOracle,
          abi: priceOracleAbi,
          functionName,
          args: [token] as const,
        })),
        multicallAddress: contracts.Multicall3,
      } as never,
    ) as Promise<never[]>
  const [configs, opinions] = await Promise.all([ofAssets('assetConfig'), ofAssets('secondOpinionOf')])
  const fees = await Promise.all(
    assets.map(token =>
      readContract(client as Client, {
        address: contracts.SwapAdapter,
        abi: uniswapV3SwapAdapterAbi,
        functionName: 'poolFeeOf',
        args: [token],
      }),
    ),
  )

  const sender = pipelinedSender(client, accounts.treasury.address) // an account without transactions
  const admin = sender.address
  const PriceOracle = await sender.deploy({ name: 'PriceOracle', abi: priceOracleAbi, args: [admin] })
  const { USDC, AgentRegistry, AllocationManager, PositionManager, VaultTrackRegistry } = contracts
  const TradeRouter = await sender.deploy({
    name: 'TradeRouter',
    abi: tradeRouterAbi,
    args: [admin, USDC, AgentRegistry, AllocationManager, PositionManager, VaultTrackRegistry, TradePolicy],
  })
  const SwapAdapter = await sender.deploy({
    name: 'UniswapV3SwapAdapter',
    abi: uniswapV3SwapAdapterAbi,
    args: [admin, TradeRouter, contracts.UniswapV3Factory, USDC],
  })
  const TradeRouterLens = await sender.deploy({
    name: 'TradeRouterLens',
    abi: tradeRouterLensAbi,
    args: [TradeRouter],
  })
  const oracle = { address: PriceOracle, abi: priceOracleAbi }
  const router = { address: TradeRouter, abi: tradeRouterAbi }
  for (const [index, token] of assets.entries()) {
    const fee = fees[index] ?? 0
    await sender.write({ ...oracle, functionName: 'setAssetConfig', args: [token, configs[index] as never] })
    await sender.write({ ...oracle, functionName: 'setSecondOpinion', args: [token, opinions[index] as never] })
    await sender.write({
      address: SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'setPool',
      args: [token, fee],
    })
  }
  await sender.write({ ...router, functionName: 'setSwapAdapter', args: [SwapAdapter] })
  const grants: [Address, string, Address][] = [
    [PriceOracle, 'ORACLE_UPDATER_ROLE', accounts.oracleUpdater.address],
    [PriceOracle, 'ORACLE_UPDATER_ROLE', accounts.priceSetter.address],
    [PriceOracle, 'ORACLE_FORCER_ROLE', accounts.admin.address],
    [TradeRouter, 'EXECUTOR_ROLE', accounts.executor.address],
    [TradeRouter, 'EXECUTOR_ROLE', OrderBook],
    [TradeRouter, 'OPERATOR_ROLE', accounts.operator.address],
  ]
  for (const [address, role, holder] of grants)
    await sender.write({ address, abi: agentRegistryAbi, functionName: 'grantRole', args: [roleHash(role), holder] })
  for (const address of [PriceOracle, TradeRouter])
    await sender.write({
      address,
      abi: agentRegistryAbi,
      functionName: 'beginDefaultAdminTransfer',
      args: [Timelock],
    })
  await setMining(false)
  await sender.settle()
  await setMining(true)
  return { PriceOracle, TradeRouter, TradeRouterLens }
}

/** The contracts of a deployment and their successors, of which one is in use at a time. */
export function createMigrations(
  { deployment, successors, node }: { deployment: Deployment; successors: Replaceable; node: Client },
  chain: Pick<Controls, 'send'>,
) {
  const { accounts, vaults, tokens } = deployment
  const contracts = deployment.contracts as Record<string, Address> & Replaceable
  const timelock = { address: contracts.Timelock as Address, abi: timelockAbi } as const

  /** Returns the contracts that are in use now. */
  async function present(): Promise<Replaceable> {
    const [oracle, router] = await Promise.all([
      readContract(node, {
        address: contracts.TokenRegistry as Address,
        abi: tokenRegistryAbi,
        functionName: 'priceOracle',
      }),
      readContract(node, {
        address: contracts.PositionManager as Address,
        abi: positionManagerAbi,
        functionName: 'tradeRouter',
      }),
    ])
    const isFirst = router === contracts.TradeRouter
    return {
      PriceOracle: oracle,
      TradeRouter: router,
      TradeRouterLens: isFirst ? contracts.TradeRouterLens : successors.TradeRouterLens,
    }
  }

  const otherThan = async (name: 'PriceOracle' | 'TradeRouter'): Promise<Address> =>
    (await present())[name] === contracts[name] ? successors[name] : contracts[name]

  /** Has the timelock make the calls of an operator's command in one transaction. */
  async function execute([group]: Awaited<ReturnType<typeof oracleMigration>>): Promise<void> {
    const calls = group?.calls ?? []
    const batch = [
      calls.map(({ address }) => address),
      calls.map(() => 0n),
      calls.map(({ abi, functionName, args }) => encodeFunctionData({ abi, functionName, args } as never)),
      zeroHash,
      keccak256(crypto.getRandomValues(new Uint8Array(32))),
    ] as const
    await chain.send(accounts.admin, { ...timelock, functionName: 'scheduleBatch', args: [...batch, 0n] })
    await chain.send(accounts.admin, { ...timelock, functionName: 'executeBatch', args: batch })
  }

  const context = { book: { contracts, vaults, tokens }, client: node } as unknown as AdminContext
  return {
    present,
    migrateOracle: async () => execute(await oracleMigration(context, await otherThan('PriceOracle'))),
    migrateRouter: async () => execute(await routerMigration(context, await otherThan('TradeRouter'))),
  }
}
