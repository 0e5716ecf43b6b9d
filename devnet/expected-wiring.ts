import { encodeTokenDescription, PLAIN_TOKEN } from '@agent-trading-service/protocol/token-description'
import { type Abi, type Address, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { blockUptimeFeedAbi } from '../contracts-abi/block-uptime-feed.ts'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import { nameBytes, trackType } from './suite.ts'
import {
  encodeSource,
  type ProtocolSuite,
  type Suite,
  type SuiteConfig,
  type TokenConfig,
  tokenAddress,
  type VaultConfig,
} from './suite-config.ts'

/** A value that a contract must return. */
export type Expectation = {
  label: string
  read: { address: Address; abi: Abi; functionName: string; args?: readonly unknown[] }
  is: unknown
}

export const on =
  (name: string, address: Address, abi: Abi) =>
  (functionName: string, args: readonly unknown[], is: unknown): Expectation => ({
    label: `${name}.${functionName}(${args.map(show).join(', ')})`,
    read: { address, abi, functionName, args },
    is,
  })

export const show = (value: unknown): string =>
  typeof value === 'object'
    ? JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner))
    : String(value)

/** Returns what the functions of protocol.md must return in any deployment of the configuration. */
export function expectedProtocol(config: SuiteConfig, suite: ProtocolSuite): Expectation[] {
  return [
    ...expectedWiring(config, suite),
    ...config.tokens.flatMap((token, index) => expectedToken(token, index, suite)),
    ...config.vaults.flatMap((vault, index) => expectedVault(config, vault, index, suite)),
  ]
}

/** Returns what the functions that our contracts add must return. */
export function expectedExtension(config: SuiteConfig, suite: Suite): Expectation[] {
  const { AgentRegistry, OrderBook, OwnerControls, PromotionCriteria, TradePolicy, TradeRouter } = suite.contracts
  return [
    on('AgentRegistry', AgentRegistry, agentRegistryAbi)('promotionCriteria', [], PromotionCriteria),
    on('AgentRegistry', AgentRegistry, agentRegistryAbi)('ownerControls', [], OwnerControls),
    ...(OrderBook
      ? [
          on('AgentRegistry', AgentRegistry, agentRegistryAbi)('orderBook', [], OrderBook),
          on('OrderBook', OrderBook, orderBookAbi)('agentRegistry', [], AgentRegistry),
          on('OrderBook', OrderBook, orderBookAbi)('tradeRouter', [], TradeRouter),
        ]
      : []),
    on('OwnerControls', OwnerControls, ownerControlsAbi)('agentRegistry', [], AgentRegistry),
    on('OwnerControls', OwnerControls, ownerControlsAbi)('tradeRouter', [], TradeRouter),
    on('TradeRouter', TradeRouter, tradeRouterAbi)('tradePolicy', [], TradePolicy),
    ...expectedPriceSources(config, suite),
    ...config.tokens.flatMap(token => [expectedDescription(token, suite), ...expectedPriceChecks(token, suite)]),
    ...config.vaults.flatMap(vault => expectedVaultExtension(config, vault, suite)),
  ]
}

function expectedPriceSources(
  { reportVerifier, blockUptime, tokens }: SuiteConfig,
  { contracts }: Suite,
): Expectation[] {
  const oracle = on('PriceOracle', contracts.PriceOracle, priceOracleAbi)
  const feed = on('BlockUptimeFeed', contracts.BlockUptimeFeed ?? zeroAddress, blockUptimeFeedAbi)
  return [
    oracle('verifier', [], reportVerifier ?? zeroAddress),
    ...tokens.map(({ address, source }) => oracle('sourceOf', [address], encodeSource(source))),
    ...(blockUptime
      ? [feed('maxBlockMs', [], blockUptime.maxBlockMs), feed('maxGapSeconds', [], blockUptime.maxGapSeconds)]
      : []),
  ]
}

function expectedWiring(config: SuiteConfig, { contracts }: ProtocolSuite): Expectation[] {
  const { AgentRegistry, AllocationManager, FeeManager, PositionManager, PriceOracle, SwapAdapter } = contracts
  const { TokenRegistry, TradeRouter, TradeRouterLens, VaultTrackRegistry } = contracts
  const registry = on('AgentRegistry', AgentRegistry, agentRegistryAbi)
  const allocation = on('AllocationManager', AllocationManager, allocationManagerAbi)
  const fees = on('FeeManager', FeeManager, feeManagerAbi)
  const positions = on('PositionManager', PositionManager, positionManagerAbi)
  const oracle = on('PriceOracle', PriceOracle, priceOracleAbi)
  const tokens = on('TokenRegistry', TokenRegistry, tokenRegistryAbi)
  const router = on('TradeRouter', TradeRouter, tradeRouterAbi)
  const adapter = on('SwapAdapter', SwapAdapter, uniswapV3SwapAdapterAbi)
  const tracks = on('VaultTrackRegistry', VaultTrackRegistry, vaultTrackRegistryAbi)
  const feed = config.sequencerFeed?.address ?? contracts.BlockUptimeFeed ?? zeroAddress
  const { gracePeriodSeconds } = config.sequencerFeed ?? config.blockUptime ?? { gracePeriodSeconds: 0n }
  return [
    registry('vaultTrackRegistry', [], VaultTrackRegistry),
    registry('allocationManager', [], AllocationManager),
    registry('feeManager', [], FeeManager),
    registry('erc8004IdentityRegistry', [], config.identityRegistry),
    registry('paused', [], false),
    allocation('vaultTrackRegistry', [], VaultTrackRegistry),
    allocation('agentRegistry', [], AgentRegistry),
    allocation('tradeRouter', [], TradeRouter),
    fees('feeAsset', [], config.usdc),
    fees('agentRegistry', [], AgentRegistry),
    fees('getRegistrationFee', [], config.registrationFee),
    fees('treasury', [], config.roles.treasury),
    fees('registrationFeeRelayer', [], config.roles.relayer),
    positions('agentRegistry', [], AgentRegistry),
    positions('vaultTrackRegistry', [], VaultTrackRegistry),
    positions('tradeRouter', [], TradeRouter),
    oracle('decimals', [config.usdc], 8),
    oracle('sequencerFeed', [], [feed, gracePeriodSeconds]),
    tokens('priceOracle', [], PriceOracle),
    tokens('tokenCount', [], BigInt(config.tokens.length)),
    router('usdc', [], config.usdc),
    router('agentRegistry', [], AgentRegistry),
    router('allocationManager', [], AllocationManager),
    router('positionManager', [], PositionManager),
    router('vaultTrackRegistry', [], VaultTrackRegistry),
    router('swapAdapter', [], SwapAdapter),
    router('keeperBountyBps', [], config.keeperBounty.bps),
    router('maxKeeperBounty', [], config.keeperBounty.max),
    adapter('usdc', [], config.usdc),
    adapter('factory', [], config.uniswapFactory),
    adapter('tradeRouter', [], TradeRouter),
    on('TradeRouterLens', TradeRouterLens, tradeRouterLensAbi)('tradeRouter', [], TradeRouter),
    tracks('vaultCount', [], BigInt(config.vaults.length)),
    ...config.tracks.map(track => tracks('getTrackType', [track.trackId], trackType(track))),
  ]
}

function expectedToken(
  { address, fee, otherFees = [], maxAge, maxDeviationBps }: TokenConfig,
  index: number,
  { contracts }: ProtocolSuite,
): Expectation[] {
  const tokens = on('TokenRegistry', contracts.TokenRegistry, tokenRegistryAbi)
  const oracle = on('PriceOracle', contracts.PriceOracle, priceOracleAbi)
  const adapter = on('SwapAdapter', contracts.SwapAdapter, uniswapV3SwapAdapterAbi)
  return [
    tokens('tokenAt', [BigInt(index)], address),
    tokens('isTokenActive', [address], true),
    oracle('maxAgeOf', [address], BigInt(maxAge)),
    oracle('maxDeviationBpsOf', [address], BigInt(maxDeviationBps)),
    adapter('poolFeeOf', [address], fee),
    ...(otherFees.length > 0 ? [adapter('poolFeesOf', [address], [fee, ...otherFees, 0, 0, 0].slice(0, 4))] : []),
  ]
}

const expectedDescription = ({ address, description = PLAIN_TOKEN }: TokenConfig, { contracts }: Suite): Expectation =>
  on('TokenRegistry', contracts.TokenRegistry, tokenRegistryAbi)(
    'descriptionOf',
    [address],
    encodeTokenDescription(description),
  )

function expectedPriceChecks(
  { address, maxAge, maxDeviationBps, deviationWindow, secondOpinion, twapRequired }: TokenConfig,
  { contracts }: Suite,
): Expectation[] {
  const oracle = on('PriceOracle', contracts.PriceOracle, priceOracleAbi)
  const opinion = secondOpinion
    ? { source: contracts.SwapAdapter, ...secondOpinion }
    : { source: zeroAddress, twapWindow: 0 }
  return [
    oracle('assetConfig', [address], { maxAge, maxDeviationBps, deviationWindow }),
    oracle('secondOpinionOf', [address], opinion),
    on('TradePolicy', contracts.TradePolicy, tradePolicyAbi)('isTwapRequired', [address], twapRequired),
  ]
}

function expectedVault(
  config: SuiteConfig,
  { slug, maxPriceAge, tokens, tracks }: VaultConfig,
  index: number,
  { contracts, vaults }: ProtocolSuite,
): Expectation[] {
  const address = vaults[slug] ?? zeroAddress
  const vault = on(slug, address, mandateVaultAbi)
  const registry = on('VaultTrackRegistry', contracts.VaultTrackRegistry, vaultTrackRegistryAbi)
  return [
    registry('vaultAt', [BigInt(index)], address),
    registry('isRegisteredVault', [address], true),
    vault('vaultName', [], nameBytes(slug)),
    vault('asset', [], config.usdc),
    vault('tokenRegistry', [], contracts.TokenRegistry),
    vault('priceOracle', [], contracts.PriceOracle),
    vault('tradeRouter', [], contracts.TradeRouter),
    vault('maxPriceAge', [], maxPriceAge),
    vault('tradingPaused', [], false),
    vault('liquidityPaused', [], false),
    vault('allowedTokenCount', [], BigInt(tokens.length)),
    ...tokens.map(symbol => vault('isAllowedToken', [tokenAddress(config, symbol)], true)),
    ...tracks.flatMap(({ policy }) => [
      registry('getVaultTrackConfig', [address, policy.trackId], { vault: address, ...policy }),
      registry('isVaultTrackActive', [address, policy.trackId], policy.active),
    ]),
  ]
}

function expectedVaultExtension(
  config: SuiteConfig,
  { slug, fees, liquidity, tracks }: VaultConfig,
  { contracts, vaults }: Suite,
): Expectation[] {
  const address = vaults[slug] ?? zeroAddress
  const vault = on(slug, address, mandateVaultAbi)
  const registry = on('VaultTrackRegistry', contracts.VaultTrackRegistry, vaultTrackRegistryAbi)
  const policies = on('TradePolicy', contracts.TradePolicy, tradePolicyAbi)
  const modeOf = (trackId: bigint) => config.tracks.find(track => track.trackId === trackId)?.capitalMode
  return [
    vault('depositFeeBps', [], fees.depositBps),
    vault('withdrawFeeBps', [], fees.withdrawBps),
    vault('feeRecipient', [], fees.recipient ?? zeroAddress),
    vault('liquidityPolicy', [], liquidity),
    ...tracks.flatMap(({ policy: { trackId }, capitalMode, limits, risk }) => [
      registry('capitalModeOf', [address, trackId], capitalMode ?? modeOf(trackId)),
      registry('riskTermsOf', [address, trackId], risk ?? { firstLossBps: 0, maxWasteBps: 0 }),
      ...(limits ? [policies('limitsOf', [address, trackId], limits)] : []),
    ]),
  ]
}
