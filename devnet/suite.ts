import { encodeTokenDescription } from '@agent-trading-service/protocol/token-description'
import { type Address, type Hex, stringToHex, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { blockUptimeFeedAbi } from '../contracts-abi/block-uptime-feed.ts'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { promotionCriteriaAbi } from '../contracts-abi/promotion-criteria.ts'
import { requestQueueAbi } from '../contracts-abi/request-queue.ts'
import { serviceReaderAbi } from '../contracts-abi/service-reader.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import type { Sender } from './sender.ts'
import {
  encodeSource,
  type ProtocolContracts,
  type Suite,
  type SuiteConfig,
  type SuiteContracts,
  type TokenConfig,
  tokenAddress,
  type VaultConfig,
} from './suite-config.ts'
import { handOverToTimelock, roleHolders } from './suite-roles.ts'

/**
 * Deploys and wires every contract. The sender is the admin while this runs and ends without any power, unless the
 * configuration gives it one; the timelock is the admin from then on.
 */
export async function deploySuite(sender: Sender, config: SuiteConfig): Promise<Suite> {
  const admin = sender.address
  const Timelock = await sender.deploy({ name: 'Timelock', abi: timelockAbi, args: [0n, [admin], [admin]] })
  const TradePolicy = await sender.deploy({ name: 'TradePolicy', abi: tradePolicyAbi, args: [admin] })
  const protocol = await deployProtocol(sender, config, ({ usdc, ...of }) =>
    sender.deploy({
      name: 'TradeRouter',
      abi: tradeRouterAbi,
      args: [
        admin,
        usdc,
        of.AgentRegistry,
        of.AllocationManager,
        of.PositionManager,
        of.VaultTrackRegistry,
        TradePolicy,
      ],
    }),
  )
  const PromotionCriteria = await sender.deploy({
    name: 'PromotionCriteria',
    abi: promotionCriteriaAbi,
    args: [protocol.AgentRegistry],
  })
  const OwnerControls = await sender.deploy({
    name: 'OwnerControls',
    abi: ownerControlsAbi,
    args: [protocol.AgentRegistry],
  })
  const OrderBook = await sender.deploy({ name: 'OrderBook', abi: orderBookAbi, args: [protocol.AgentRegistry] })
  const ServiceReader = await deployReader(sender)
  const BlockUptimeFeed = await deployBlockUptimeFeed(sender, config, protocol)
  const contracts = {
    ...protocol,
    Timelock,
    TradePolicy,
    PromotionCriteria,
    OwnerControls,
    OrderBook,
    ServiceReader,
    ...(BlockUptimeFeed && { BlockUptimeFeed }),
  }
  await wireProtocol(sender, config, contracts)
  if (config.reportVerifier) {
    await sender.write({
      address: contracts.PriceOracle,
      abi: priceOracleAbi,
      functionName: 'setVerifier',
      args: [config.reportVerifier],
    })
  }
  await sender.write({
    address: contracts.AgentRegistry,
    abi: agentRegistryAbi,
    functionName: 'setPromotionCriteria',
    args: [PromotionCriteria],
  })
  await sender.write({
    address: contracts.AgentRegistry,
    abi: agentRegistryAbi,
    functionName: 'setOwnerControls',
    args: [OwnerControls],
  })
  await sender.write({
    address: contracts.AgentRegistry,
    abi: agentRegistryAbi,
    functionName: 'setOrderBook',
    args: [OrderBook],
  })
  for (const token of config.tokens) await listToken(sender, contracts, token)
  const vaults: Record<string, Address> = {}
  for (const vault of config.vaults) {
    const address = await deployVault(sender, config, contracts, vault)
    vaults[vault.slug] = address
    await setExtendedVault(sender, contracts, address, vault)
  }
  const suite = { contracts, vaults }
  await grantRoles(sender, config, suite)
  await handOverToTimelock(sender, config.roles, suite)
  await sender.settle()
  return suite
}

/** Deploys the contract of the service's reads. It has no power, no state and no owner. */
export const deployReader = (sender: Sender): Promise<Address> =>
  sender.deploy({ name: 'ServiceReader', abi: serviceReaderAbi, args: [] })

/** Deploys the uptime feed of a chain that has none, and sets it. */
async function deployBlockUptimeFeed(
  sender: Sender,
  { blockUptime }: SuiteConfig,
  { PriceOracle }: ProtocolContracts,
): Promise<Address | undefined> {
  if (!blockUptime) return undefined
  const { maxBlockMs, maxGapSeconds, gracePeriodSeconds } = blockUptime
  const feed = await sender.deploy({
    name: 'BlockUptimeFeed',
    abi: blockUptimeFeedAbi,
    args: [maxBlockMs, maxGapSeconds],
  })
  await sender.write({
    address: PriceOracle,
    abi: priceOracleAbi,
    functionName: 'setSequencerFeed',
    args: [feed, gracePeriodSeconds],
  })
  return feed
}

type RouterParts = Pick<
  ProtocolContracts,
  'AgentRegistry' | 'AllocationManager' | 'PositionManager' | 'VaultTrackRegistry'
> & { usdc: Address }

/** Deploys what protocol.md has; the router's constructor and the bytecode differ between ours and others. */
export async function deployProtocol(
  sender: Sender,
  { usdc, roles, identityRegistry, uniswapFactory }: SuiteConfig,
  deployRouter: (parts: RouterParts) => Promise<Address>,
  bytecodeOf: (name: string) => { bytecode?: Hex } = () => ({}),
): Promise<ProtocolContracts> {
  const admin = sender.address
  const deploy: Sender['deploy'] = creation => sender.deploy({ ...creation, ...bytecodeOf(creation.name) })
  const PriceOracle = await deploy({ name: 'PriceOracle', abi: priceOracleAbi, args: [admin] })
  const TokenRegistry = await deploy({ name: 'TokenRegistry', abi: tokenRegistryAbi, args: [admin, PriceOracle] })
  const VaultTrackRegistry = await deploy({ name: 'VaultTrackRegistry', abi: vaultTrackRegistryAbi, args: [admin] })
  const AllocationManager = await deploy({
    name: 'AllocationManager',
    abi: allocationManagerAbi,
    args: [admin, VaultTrackRegistry],
  })
  const FeeManager = await deploy({ name: 'FeeManager', abi: feeManagerAbi, args: [admin, usdc, roles.treasury] })
  const AgentRegistry = await deploy({
    name: 'AgentRegistry',
    abi: agentRegistryAbi,
    args: [admin, VaultTrackRegistry, AllocationManager, FeeManager, identityRegistry],
  })
  const PositionManager = await deploy({
    name: 'PositionManager',
    abi: positionManagerAbi,
    args: [admin, AgentRegistry, VaultTrackRegistry],
  })
  const TradeRouter = await deployRouter({
    usdc,
    AgentRegistry,
    AllocationManager,
    PositionManager,
    VaultTrackRegistry,
  })
  return {
    PriceOracle,
    TokenRegistry,
    VaultTrackRegistry,
    AllocationManager,
    FeeManager,
    AgentRegistry,
    PositionManager,
    TradeRouter,
    SwapAdapter: await deploy({
      name: 'UniswapV3SwapAdapter',
      abi: uniswapV3SwapAdapterAbi,
      args: [admin, TradeRouter, uniswapFactory, usdc],
    }),
    TradeRouterLens: await deploy({ name: 'TradeRouterLens', abi: tradeRouterLensAbi, args: [TradeRouter] }),
  }
}

/** Wires the contracts of protocol.md to each other and lists tracks and tokens. */
export async function wireProtocol(sender: Sender, config: SuiteConfig, contracts: ProtocolContracts): Promise<void> {
  const { AgentRegistry, AllocationManager, FeeManager, PositionManager, PriceOracle, TradeRouter } = contracts
  const allocation = { address: AllocationManager, abi: allocationManagerAbi }
  await sender.write({ ...allocation, functionName: 'setAgentRegistry', args: [AgentRegistry] })
  await sender.write({ ...allocation, functionName: 'setTradeRouter', args: [TradeRouter] })
  await sender.write({
    address: PositionManager,
    abi: positionManagerAbi,
    functionName: 'setTradeRouter',
    args: [TradeRouter],
  })
  const router = { address: TradeRouter, abi: tradeRouterAbi }
  await sender.write({ ...router, functionName: 'setSwapAdapter', args: [contracts.SwapAdapter] })
  const { bps, max } = config.keeperBounty
  await sender.write({ ...router, functionName: 'setKeeperBounty', args: [bps, max] })
  const fees = { address: FeeManager, abi: feeManagerAbi }
  await sender.write({ ...fees, functionName: 'setAgentRegistry', args: [AgentRegistry] })
  await sender.write({ ...fees, functionName: 'setRegistrationFee', args: [config.registrationFee] })
  await sender.write({ ...fees, functionName: 'setRegistrationFeeRelayer', args: [config.roles.relayer] })
  if (config.sequencerFeed) {
    await sender.write({
      address: PriceOracle,
      abi: priceOracleAbi,
      functionName: 'setSequencerFeed',
      args: [config.sequencerFeed.address, config.sequencerFeed.gracePeriodSeconds],
    })
  }
  for (const track of config.tracks) {
    await sender.write({
      address: contracts.VaultTrackRegistry,
      abi: vaultTrackRegistryAbi,
      functionName: 'setTrackType',
      args: [trackType(track)],
    })
  }
  for (const { address, fee, otherFees = [] } of config.tokens) {
    await sender.write({
      address: contracts.TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'registerToken',
      args: [address],
    })
    await sender.write({
      address: contracts.SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'setPool',
      args: [address, fee],
    })
    const [first = 0, second = 0, third = 0] = otherFees
    if (first !== 0)
      await sender.write({
        address: contracts.SwapAdapter,
        abi: uniswapV3SwapAdapterAbi,
        functionName: 'setOtherPools',
        args: [address, [first, second, third]],
      })
  }
}

/** Describes a listed token, and sets how its price is checked. */
async function listToken(sender: Sender, contracts: SuiteContracts, token: TokenConfig): Promise<void> {
  const { PriceOracle, SwapAdapter, TokenRegistry, TradePolicy } = contracts
  const { address, maxAge, maxDeviationBps, deviationWindow, secondOpinion, twapRequired, description, source } = token
  if (description) {
    await sender.write({
      address: TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'describeToken',
      args: [address, encodeTokenDescription(description)],
    })
  }
  const oracle = { address: PriceOracle, abi: priceOracleAbi }
  await sender.write({
    ...oracle,
    functionName: 'setAssetConfig',
    args: [address, { maxAge, maxDeviationBps, deviationWindow }],
  })
  if (secondOpinion) {
    await sender.write({
      ...oracle,
      functionName: 'setSecondOpinion',
      args: [address, { source: SwapAdapter, ...secondOpinion }],
    })
  }
  if (source) await sender.write({ ...oracle, functionName: 'setSource', args: [address, encodeSource(source)] })
  if (twapRequired) {
    await sender.write({
      address: TradePolicy,
      abi: tradePolicyAbi,
      functionName: 'setTwapRequired',
      args: [address, true],
    })
  }
}

/** Deploys a vault with what protocol.md has, and registers it with its tracks. */
export async function deployVault(
  sender: Sender,
  config: SuiteConfig,
  { TokenRegistry, TradeRouter, VaultTrackRegistry }: ProtocolContracts,
  { slug, name, symbol, maxPriceAge, tokens, tracks }: VaultConfig,
  bytecode: { bytecode?: Hex } = {},
): Promise<Address> {
  const address = await sender.deploy({
    name: 'MandateVault',
    abi: mandateVaultAbi,
    args: [sender.address, config.usdc, name, symbol, nameBytes(slug), TokenRegistry],
    ...bytecode,
  })
  const vault = { address, abi: mandateVaultAbi }
  await sender.write({ ...vault, functionName: 'setTradeRouter', args: [TradeRouter] })
  await sender.write({ ...vault, functionName: 'setMaxPriceAge', args: [maxPriceAge] })
  for (const token of tokens) {
    await sender.write({ ...vault, functionName: 'enableToken', args: [tokenAddress(config, token)] })
  }
  const registry = { address: VaultTrackRegistry, abi: vaultTrackRegistryAbi }
  await sender.write({ ...registry, functionName: 'registerVault', args: [address] })
  for (const { policy } of tracks) {
    const args = [address, policy.trackId, { vault: address, ...policy }] as const
    await sender.write({ ...registry, functionName: 'setVaultTrackConfig', args })
  }
  return address
}

/** Sets the fees, the liquidity policy, the request queue, the capital modes and the trade limits of a vault. */
async function setExtendedVault(
  sender: Sender,
  { TradePolicy, VaultTrackRegistry }: SuiteContracts,
  address: Address,
  { fees, liquidity, tracks }: VaultConfig,
): Promise<void> {
  const registry = { address: VaultTrackRegistry, abi: vaultTrackRegistryAbi }
  const vault = { address, abi: mandateVaultAbi }
  await sender.write({
    ...vault,
    functionName: 'setFees',
    args: [fees.depositBps, fees.withdrawBps, fees.recipient ?? zeroAddress],
  })
  await sender.write({ ...vault, functionName: 'setLiquidityPolicy', args: [liquidity] })
  const queue = await sender.deploy({ name: 'RequestQueue', abi: requestQueueAbi, args: [address] })
  await sender.write({ ...vault, functionName: 'setRequestQueue', args: [queue] })
  for (const { policy, capitalMode, limits, risk } of tracks) {
    if (capitalMode !== undefined) {
      await sender.write({
        ...registry,
        functionName: 'setVaultTrackCapitalMode',
        args: [address, policy.trackId, capitalMode],
      })
    }
    if (limits) {
      await sender.write({
        address: TradePolicy,
        abi: tradePolicyAbi,
        functionName: 'setLimits',
        args: [address, policy.trackId, limits],
      })
    }
    // Last: the registry compares first-loss capital with the limits' exit slippage.
    if (risk) {
      await sender.write({
        ...registry,
        functionName: 'setVaultTrackRiskTerms',
        args: [address, policy.trackId, risk],
      })
    }
  }
}

async function grantRoles(sender: Sender, { roles }: SuiteConfig, suite: Suite): Promise<void> {
  for (const { address, role, holders } of roleHolders(roles, suite)) {
    for (const account of holders) {
      await sender.write({ address, abi: agentRegistryAbi, functionName: 'grantRole', args: [role, account] })
    }
  }
}

export const nameBytes = (name: string) => stringToHex(name, { size: 32 })

export const trackType = ({ trackId, name, capitalMode }: SuiteConfig['tracks'][number]) => ({
  trackId,
  name: nameBytes(name),
  capitalMode,
  active: true,
})
