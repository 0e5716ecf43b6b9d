import {
  type Abi,
  type Address,
  type Hex,
  isAddressEqual,
  keccak256,
  type PublicClient,
  stringToHex,
  zeroAddress,
  zeroHash,
} from 'viem'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import type { TrackConfig } from '../src/protocol/track-config.ts'
import type { Sender } from './sender.ts'

/** The risk policy of one track in one vault: `VaultTrackConfig` without the vault it is set for. */
export type TrackPolicy = Omit<TrackConfig, 'vault'>

/** What is deployed around what is there already. Amounts are USDC base units, ages are seconds. */
export type SuiteConfig = {
  usdc: Address
  /** The ERC-8004 identity registry; the zero address switches linking off. */
  identityRegistry: Address
  uniswapFactory: Address
  sequencerFeed?: { address: Address; gracePeriodSeconds: bigint } | undefined
  roles: {
    admin: Address
    treasury: Address
    relayer: Address
    operators: Address[]
    registrars: Address[]
    executors: Address[]
    oracleUpdaters: Address[]
    oracleForcers: Address[]
  }
  registrationFee: bigint
  keeperBounty: { bps: bigint; max: bigint }
  /** A token trades in the pool of USDC with this fee, which exists and is initialized. */
  tokens: { symbol: string; address: Address; fee: number; maxAge: number; maxDeviationBps: number }[]
  tracks: { trackId: bigint; name: string; capitalMode: number }[]
  vaults: {
    slug: string
    name: string
    symbol: string
    maxPriceAge: bigint
    tokens: string[]
    policies: TrackPolicy[]
  }[]
}

export type SuiteContracts = Record<
  | 'AgentRegistry'
  | 'VaultTrackRegistry'
  | 'AllocationManager'
  | 'FeeManager'
  | 'TokenRegistry'
  | 'PriceOracle'
  | 'PositionManager'
  | 'TradeRouter'
  | 'TradeRouterLens'
  | 'SwapAdapter',
  Address
>
export type Suite = { contracts: SuiteContracts; vaults: Record<string, Address> }

const ADMIN = zeroHash
const role = (name: string) => keccak256(stringToHex(name))
const OPERATOR = role('OPERATOR_ROLE')
const REGISTRAR = role('REGISTRAR_ROLE')
const EXECUTOR = role('EXECUTOR_ROLE')
const ORACLE_UPDATER = role('ORACLE_UPDATER_ROLE')
const ORACLE_FORCER = role('ORACLE_FORCER_ROLE')

/** Deploys and wires the whole suite. The sender is its admin meanwhile, and hands that to `roles.admin` at the end. */
export async function deploySuite(sender: Sender, config: SuiteConfig): Promise<Suite> {
  const contracts = await deployContracts(sender, config)
  const vaults = await deployVaults(sender, config, contracts)
  await wire(sender, config, contracts)
  for (const { account, role, address } of grants(config, { contracts, vaults })) {
    await sender.write({ address, abi: agentRegistryAbi, functionName: 'grantRole', args: [role, account] })
  }
  if (!isAddressEqual(sender.address, config.roles.admin)) await handOver(sender, config, { contracts, vaults })
  await sender.settle()
  return { contracts, vaults }
}

async function deployContracts(sender: Sender, config: SuiteConfig): Promise<SuiteContracts> {
  const { usdc, roles } = config
  const admin = sender.address
  const PriceOracle = await sender.deploy({ name: 'PriceOracle', abi: priceOracleAbi, args: [admin] })
  const TokenRegistry = await sender.deploy({
    name: 'TokenRegistry',
    abi: tokenRegistryAbi,
    args: [admin, PriceOracle],
  })
  const VaultTrackRegistry = await sender.deploy({
    name: 'VaultTrackRegistry',
    abi: vaultTrackRegistryAbi,
    args: [admin],
  })
  const AllocationManager = await sender.deploy({
    name: 'AllocationManager',
    abi: allocationManagerAbi,
    args: [admin, VaultTrackRegistry],
  })
  const FeeManager = await sender.deploy({
    name: 'FeeManager',
    abi: feeManagerAbi,
    args: [admin, usdc, roles.treasury],
  })
  const AgentRegistry = await sender.deploy({
    name: 'AgentRegistry',
    abi: agentRegistryAbi,
    args: [admin, VaultTrackRegistry, AllocationManager, FeeManager, config.identityRegistry],
  })
  const PositionManager = await sender.deploy({
    name: 'PositionManager',
    abi: positionManagerAbi,
    args: [admin, AgentRegistry, VaultTrackRegistry],
  })
  const TradeRouter = await sender.deploy({
    name: 'TradeRouter',
    abi: tradeRouterAbi,
    args: [admin, usdc, AgentRegistry, AllocationManager, PositionManager, VaultTrackRegistry],
  })
  const SwapAdapter = await sender.deploy({
    name: 'UniswapV3SwapAdapter',
    abi: uniswapV3SwapAdapterAbi,
    args: [admin, TradeRouter, config.uniswapFactory, usdc],
  })
  const TradeRouterLens = await sender.deploy({
    name: 'TradeRouterLens',
    abi: tradeRouterLensAbi,
    args: [TradeRouter],
  })
  return {
    AgentRegistry,
    VaultTrackRegistry,
    AllocationManager,
    FeeManager,
    TokenRegistry,
    PriceOracle,
    PositionManager,
    TradeRouter,
    TradeRouterLens,
    SwapAdapter,
  }
}

async function wire(sender: Sender, config: SuiteConfig, contracts: SuiteContracts): Promise<void> {
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
}

async function deployVaults(
  sender: Sender,
  config: SuiteConfig,
  contracts: SuiteContracts,
): Promise<Record<string, Address>> {
  const { TokenRegistry, PriceOracle, SwapAdapter, VaultTrackRegistry, TradeRouter } = contracts
  for (const { address, fee, maxAge, maxDeviationBps } of config.tokens) {
    await sender.write({
      address: TokenRegistry,
      abi: tokenRegistryAbi,
      functionName: 'registerToken',
      args: [address],
    })
    await sender.write({
      address: PriceOracle,
      abi: priceOracleAbi,
      functionName: 'setAssetConfig',
      args: [address, maxAge, maxDeviationBps],
    })
    await sender.write({
      address: SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'setPool',
      args: [address, fee],
    })
  }
  const registry = { address: VaultTrackRegistry, abi: vaultTrackRegistryAbi }
  for (const track of config.tracks) {
    await sender.write({ ...registry, functionName: 'setTrackType', args: [trackType(track)] })
  }
  const vaults: Record<string, Address> = {}
  for (const { slug, name, symbol, maxPriceAge, tokens, policies } of config.vaults) {
    const address = await sender.deploy({
      name: 'MandateVault',
      abi: mandateVaultAbi,
      args: [sender.address, config.usdc, name, symbol, nameBytes(slug), TokenRegistry],
    })
    vaults[slug] = address
    const vault = { address, abi: mandateVaultAbi }
    await sender.write({ ...vault, functionName: 'setTradeRouter', args: [TradeRouter] })
    await sender.write({ ...vault, functionName: 'setMaxPriceAge', args: [maxPriceAge] })
    for (const token of tokens) {
      await sender.write({ ...vault, functionName: 'enableToken', args: [tokenAddress(config, token)] })
    }
    await sender.write({ ...registry, functionName: 'registerVault', args: [address] })
    for (const policy of policies) {
      const args = [address, policy.trackId, { vault: address, ...policy }] as const
      await sender.write({ ...registry, functionName: 'setVaultTrackConfig', args })
    }
  }
  return vaults
}

/** Who may do what, where. */
function grants(
  config: SuiteConfig,
  { contracts, vaults }: Suite,
): { account: Address; role: Hex; address: Address }[] {
  const { AgentRegistry, AllocationManager, TokenRegistry, TradeRouter, PriceOracle } = contracts
  const { operators, registrars, executors, oracleUpdaters, oracleForcers } = config.roles
  const grant = (role: Hex, accounts: Address[], addresses: Address[]) =>
    addresses.flatMap(address => accounts.map(account => ({ account, role, address })))
  const operated = [AgentRegistry, AllocationManager, TokenRegistry, TradeRouter, ...Object.values(vaults)]
  return [
    ...grant(OPERATOR, operators, operated),
    ...grant(REGISTRAR, registrars, [AgentRegistry]),
    ...grant(EXECUTOR, executors, [TradeRouter]),
    ...grant(ORACLE_UPDATER, oracleUpdaters, [PriceOracle]),
    ...grant(ORACLE_FORCER, oracleForcers, [PriceOracle]),
  ]
}

const administeredNames = [
  'AgentRegistry',
  'VaultTrackRegistry',
  'AllocationManager',
  'FeeManager',
  'TokenRegistry',
  'PriceOracle',
  'PositionManager',
  'TradeRouter',
  'SwapAdapter',
] as const

/** Every contract with roles. */
function administered({ contracts, vaults }: Suite): Address[] {
  return [...administeredNames.map(name => contracts[name]), ...Object.values(vaults)]
}

async function handOver(sender: Sender, config: SuiteConfig, suite: Suite): Promise<void> {
  for (const address of administered(suite)) {
    const access = { address, abi: agentRegistryAbi }
    await sender.write({ ...access, functionName: 'grantRole', args: [ADMIN, config.roles.admin] })
    await sender.write({ ...access, functionName: 'renounceRole', args: [ADMIN, sender.address] })
  }
}

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
  const expectations = expected(config, suite, deployer)
  const answers = await client.multicall({ contracts: expectations.map(({ read }) => read), batchSize: 32_768 })
  const differences = expectations.flatMap(({ label, is }, index) => {
    const answer = answers[index]
    if (answer?.status === 'success' && same(answer.result, is)) return []
    const got =
      answer?.status === 'success' ? show(answer.result) : (answer?.error.message.split('\n')[0] ?? 'no answer')
    return [`${label}: expected ${show(is)}, the chain says ${got}`]
  })
  if (differences.length > 0) throw new Error(`The suite is not wired as configured:\n- ${differences.join('\n- ')}`)
  return expectations.length
}

function expected(config: SuiteConfig, suite: Suite, deployer: Address): Expectation[] {
  const { contracts, vaults } = suite
  const { AgentRegistry, AllocationManager, FeeManager, PositionManager, PriceOracle, SwapAdapter } = contracts
  const { TokenRegistry, TradeRouter, TradeRouterLens, VaultTrackRegistry } = contracts
  const on =
    (name: string, address: Address, abi: Abi) =>
    (functionName: string, args: readonly unknown[], is: unknown): Expectation => ({
      label: `${name}.${functionName}(${args.map(show).join(', ')})`,
      read: { address, abi, functionName, args },
      is,
    })
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
    ...config.tokens.flatMap(({ address, fee, maxAge, maxDeviationBps }, index) => [
      tokens('tokenAt', [BigInt(index)], address),
      tokens('isTokenActive', [address], true),
      oracle('maxAgeOf', [address], BigInt(maxAge)),
      oracle('maxDeviationBpsOf', [address], BigInt(maxDeviationBps)),
      adapter('poolFeeOf', [address], fee),
    ]),
    ...config.tracks.map(track => tracks('getTrackType', [track.trackId], trackType(track))),
    ...config.vaults.flatMap(({ slug, maxPriceAge, tokens, policies }, index) => {
      const address = vaults[slug] ?? zeroAddress
      const vault = on(slug, address, mandateVaultAbi)
      return [
        tracks('vaultAt', [BigInt(index)], address),
        tracks('isRegisteredVault', [address], true),
        vault('vaultName', [], nameBytes(slug)),
        vault('asset', [], config.usdc),
        vault('tokenRegistry', [], TokenRegistry),
        vault('priceOracle', [], PriceOracle),
        vault('tradeRouter', [], TradeRouter),
        vault('maxPriceAge', [], maxPriceAge),
        vault('tradingPaused', [], false),
        vault('liquidityPaused', [], false),
        vault('allowedTokenCount', [], BigInt(tokens.length)),
        ...tokens.map(symbol => vault('isAllowedToken', [tokenAddress(config, symbol)], true)),
        ...policies.flatMap(policy => [
          tracks('getVaultTrackConfig', [address, policy.trackId], { vault: address, ...policy }),
          tracks('isVaultTrackActive', [address, policy.trackId], policy.active),
        ]),
      ]
    }),
    ...grants(config, suite).map(({ address, role, account }) =>
      on(nameOf(suite, address), address, agentRegistryAbi)('hasRole', [role, account], true),
    ),
    ...administered(suite).flatMap(address => {
      const access = on(nameOf(suite, address), address, agentRegistryAbi)
      const admin = access('hasRole', [ADMIN, config.roles.admin], true)
      if (isAddressEqual(deployer, config.roles.admin)) return [admin]
      return [admin, access('hasRole', [ADMIN, deployer], false)]
    }),
  ]
}

function tokenAddress({ tokens }: SuiteConfig, symbol: string): Address {
  const token = tokens.find(token => token.symbol === symbol)
  if (!token) throw new Error(`A vault allows ${symbol}, which is not among the tokens.`)
  return token.address
}

const nameBytes = (name: string) => stringToHex(name, { size: 32 })

const trackType = ({ trackId, name, capitalMode }: SuiteConfig['tracks'][number]) => ({
  trackId,
  name: nameBytes(name),
  capitalMode,
  active: true,
})

function nameOf({ contracts, vaults }: Suite, address: Address): string {
  return Object.entries({ ...contracts, ...vaults }).find(([, at]) => at === address)?.[0] ?? address
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
