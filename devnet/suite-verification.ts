import { type Abi, type Address, isAddressEqual, type PublicClient, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import { nameBytes, trackType } from './suite.ts'
import { type Suite, type SuiteConfig, tokenAddress, type VaultConfig } from './suite-config.ts'
import { administered, DEFAULT_ADMIN_ROLE, namedAccounts, roleHolders, timelockRoles } from './suite-roles.ts'

type Expectation = {
  label: string
  read: { address: Address; abi: Abi; functionName: string; args?: readonly unknown[] }
  is: unknown
}

/** Reads every wired value and role back from the chain; throws with the list of what differs. */
export async function verifySuite(
  client: PublicClient,
  config: SuiteConfig,
  suite: Suite,
  deployer: Address,
): Promise<number> {
  const expectations = [
    ...expectedWiring(config, suite),
    ...config.tokens.flatMap((token, index) => expectedToken(token, index, suite)),
    ...config.vaults.flatMap((vault, index) => expectedVault(config, vault, index, suite)),
    ...expectedRoles(config, suite, deployer),
  ]
  const results = await client.multicall({ contracts: expectations.map(({ read }) => read), batchSize: 32_768 })
  const differences = expectations.flatMap(({ label, is }, index) => {
    const result = results[index]
    if (result?.status === 'success' && same(result.result, is)) return []
    const got =
      result?.status === 'success' ? show(result.result) : (result?.error.message.split('\n')[0] ?? 'no result')
    return [`${label}: expected ${show(is)}, the chain says ${got}`]
  })
  if (differences.length > 0) throw new Error(`The suite is not wired as configured:\n- ${differences.join('\n- ')}`)
  return expectations.length
}

const on =
  (name: string, address: Address, abi: Abi) =>
  (functionName: string, args: readonly unknown[], is: unknown): Expectation => ({
    label: `${name}.${functionName}(${args.map(show).join(', ')})`,
    read: { address, abi, functionName, args },
    is,
  })

function expectedWiring(config: SuiteConfig, { contracts }: Suite): Expectation[] {
  const { AgentRegistry, AllocationManager, FeeManager, PositionManager, PriceOracle, SwapAdapter } = contracts
  const { PromotionCriteria, TokenRegistry, TradePolicy, TradeRouter, TradeRouterLens, VaultTrackRegistry } = contracts
  const registry = on('AgentRegistry', AgentRegistry, agentRegistryAbi)
  const allocation = on('AllocationManager', AllocationManager, allocationManagerAbi)
  const fees = on('FeeManager', FeeManager, feeManagerAbi)
  const positions = on('PositionManager', PositionManager, positionManagerAbi)
  const oracle = on('PriceOracle', PriceOracle, priceOracleAbi)
  const tokens = on('TokenRegistry', TokenRegistry, tokenRegistryAbi)
  const router = on('TradeRouter', TradeRouter, tradeRouterAbi)
  const adapter = on('SwapAdapter', SwapAdapter, uniswapV3SwapAdapterAbi)
  const tracks = on('VaultTrackRegistry', VaultTrackRegistry, vaultTrackRegistryAbi)
  const { address: feed, gracePeriodSeconds } = config.sequencerFeed ?? { address: zeroAddress, gracePeriodSeconds: 0n }
  return [
    registry('vaultTrackRegistry', [], VaultTrackRegistry),
    registry('allocationManager', [], AllocationManager),
    registry('feeManager', [], FeeManager),
    registry('erc8004IdentityRegistry', [], config.identityRegistry),
    registry('promotionCriteria', [], PromotionCriteria),
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
    router('tradePolicy', [], TradePolicy),
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

function expectedToken(token: SuiteConfig['tokens'][number], index: number, { contracts }: Suite): Expectation[] {
  const { address, fee, maxAge, maxDeviationBps, deviationWindow, secondOpinion, twapRequired } = token
  const tokens = on('TokenRegistry', contracts.TokenRegistry, tokenRegistryAbi)
  const oracle = on('PriceOracle', contracts.PriceOracle, priceOracleAbi)
  const opinion = secondOpinion
    ? { source: contracts.SwapAdapter, ...secondOpinion }
    : { source: zeroAddress, twapWindow: 0, maxDeviationBps: 0 }
  return [
    tokens('tokenAt', [BigInt(index)], address),
    tokens('isTokenActive', [address], true),
    oracle('assetConfig', [address], { maxAge, maxDeviationBps, deviationWindow }),
    oracle('secondOpinionOf', [address], opinion),
    on('SwapAdapter', contracts.SwapAdapter, uniswapV3SwapAdapterAbi)('poolFeeOf', [address], fee),
    on('TradePolicy', contracts.TradePolicy, tradePolicyAbi)('isTwapRequired', [address], twapRequired),
  ]
}

function expectedVault(
  config: SuiteConfig,
  { slug, maxPriceAge, fees, liquidity, tokens, tracks }: VaultConfig,
  index: number,
  { contracts, vaults }: Suite,
): Expectation[] {
  const address = vaults[slug] ?? zeroAddress
  const vault = on(slug, address, mandateVaultAbi)
  const registry = on('VaultTrackRegistry', contracts.VaultTrackRegistry, vaultTrackRegistryAbi)
  const policies = on('TradePolicy', contracts.TradePolicy, tradePolicyAbi)
  const modeOf = (trackId: bigint) => config.tracks.find(track => track.trackId === trackId)?.capitalMode
  return [
    registry('vaultAt', [BigInt(index)], address),
    registry('isRegisteredVault', [address], true),
    vault('vaultName', [], nameBytes(slug)),
    vault('asset', [], config.usdc),
    vault('tokenRegistry', [], contracts.TokenRegistry),
    vault('priceOracle', [], contracts.PriceOracle),
    vault('tradeRouter', [], contracts.TradeRouter),
    vault('scheduledTradeRouter', [], [zeroAddress, 0n]),
    vault('maxPriceAge', [], maxPriceAge),
    vault('depositFeeBps', [], fees.depositBps),
    vault('withdrawFeeBps', [], fees.withdrawBps),
    vault('feeRecipient', [], fees.recipient ?? zeroAddress),
    vault('liquidityPolicy', [], liquidity),
    vault('tradingPaused', [], false),
    vault('liquidityPaused', [], false),
    vault('allowedTokenCount', [], BigInt(tokens.length)),
    ...tokens.map(symbol => vault('isAllowedToken', [tokenAddress(config, symbol)], true)),
    ...tracks.flatMap(({ policy, capitalMode, limits }) => [
      registry('getVaultTrackConfig', [address, policy.trackId], { vault: address, ...policy }),
      registry('isVaultTrackActive', [address, policy.trackId], policy.active),
      registry('capitalModeOf', [address, policy.trackId], capitalMode ?? modeOf(policy.trackId)),
      ...(limits ? [policies('limitsOf', [address, policy.trackId], limits)] : []),
    ]),
  ]
}

/** Every role of every contract, for every account that is known: who holds it, and that nobody else does. */
function expectedRoles({ roles }: SuiteConfig, suite: Suite, deployer: Address): Expectation[] {
  const accounts = [...new Set([...namedAccounts(roles), deployer, zeroAddress])]
  const timelock = suite.contracts.Timelock
  const holds = (name: string, address: Address, role: string, hash: string, holders: Address[]): Expectation[] =>
    accounts.map(account => ({
      ...on(name, address, agentRegistryAbi)(
        'hasRole',
        [hash, account],
        holders.some(holder => isAddressEqual(holder, account)),
      ),
      label: `${name}.hasRole(${role}, ${account})`,
    }))
  return [
    on('Timelock', timelock, timelockAbi)('getMinDelay', [], roles.timelock.delaySeconds),
    ...timelockRoles(roles).flatMap(({ name, role, holders }) => holds('Timelock', timelock, name, role, holders)),
    ...holds('Timelock', timelock, 'DEFAULT_ADMIN_ROLE', DEFAULT_ADMIN_ROLE, []),
    ...administered(suite).flatMap(([name, address]) => {
      const contract = on(name, address, agentRegistryAbi)
      return [
        contract('defaultAdmin', [], timelock),
        contract('pendingDefaultAdmin', [], zeroAddress),
        ...holds(name, address, 'DEFAULT_ADMIN_ROLE', DEFAULT_ADMIN_ROLE, []),
      ]
    }),
    ...roleHolders(roles, suite).flatMap(({ contract, address, name, role, holders }) =>
      holds(contract, address, name, role, holders),
    ),
  ]
}

function same(got: unknown, expected: unknown): boolean {
  if (typeof got === 'string' && typeof expected === 'string') return got.toLowerCase() === expected.toLowerCase()
  if (typeof expected !== 'object' || expected === null) return got === expected
  if (typeof got !== 'object' || got === null) return false
  return Object.entries(expected).every(([key, value]) => same((got as Record<string, unknown>)[key], value))
}

const show = (value: unknown): string =>
  typeof value === 'object'
    ? JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? `${inner}` : inner))
    : String(value)
