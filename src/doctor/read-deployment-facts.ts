import type {
  DeploymentFacts,
  FeeFact,
  ServiceAccount,
  TrackFact,
  WiringFact,
} from '@agent-trading-service/protocol/deployment-facts'
import { Track } from '@agent-trading-service/protocol/enums'
import { deployedRoles, roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { toDomain } from '@agent-trading-service/protocol/typed-data'
import { administeredContracts, vaultWiringRules, wiringRules } from '@agent-trading-service/protocol/wiring'
import { type Address, getAddress, parseAbi, zeroAddress } from 'viem'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { TradingChain } from '../chain/configured-chain.ts'
import { agentRegistry, eip712Contract } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'

const accessAbi = parseAbi([
  'function defaultAdmin() view returns (address)',
  'function pendingDefaultAdmin() view returns (address)',
  'function hasRole(bytes32 role, address account) view returns (bool)',
])
const timelockAbi = parseAbi(['function getMinDelay() view returns (uint256)'])
const extensionAbi = parseAbi([
  'function orderBook() view returns (address)',
  'function ownerControls() view returns (address)',
  'function promotionCriteria() view returns (address)',
  'function tradePolicy() view returns (address)',
])
const permitAbi = parseAbi([
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function name() view returns (string)',
])

const access = (address: Address) => ({ address, abi: accessAbi })
const ADDRESS = [{ type: 'address', name: '' }] as const
/** Returns a call of a function without arguments that returns an address. */
function getter(address: Address, name: string) {
  const abi = [{ type: 'function', name, inputs: [], outputs: ADDRESS, stateMutability: 'view' }] as const
  return optional(call({ address, abi }, name, []))
}

/** The contracts of a deployment by name. The chain knows some that a configuration need not name. */
type NamedAddresses = Partial<Record<string, Address>>

/**
 * Reads the wiring, the admins, the roles of the service's accounts, the fee, the signing domains and the limits of a
 * deployment, in two calls. Throws CHAIN_UNREACHABLE.
 */
export async function readDeploymentFacts(
  chain: TradingChain,
  accounts: readonly ServiceAccount[],
  named: NamedAddresses = {},
): Promise<DeploymentFacts> {
  const contracts = await discoverContracts(chain, { ...chain.contracts, ...chain.trading, ...named })
  const { vaults } = chain
  const places = { contracts, vaults }
  const addressOf = (name: string) => contracts[name] ?? vaults[name]
  const rules = [...wiringRules, ...Object.keys(vaults).flatMap(vaultWiringRules)].flatMap(rule => {
    const [address, expected] = [addressOf(rule.contract), addressOf(rule.target)]
    return address && expected ? [{ ...rule, address, expected }] : []
  })
  const administered = [...administeredContracts, ...Object.keys(vaults)].flatMap(contract => {
    const address = addressOf(contract)
    return address ? [{ contract, address }] : []
  })
  const roles = deployedRoles(places).flatMap(({ address, contract, role }) =>
    accounts.map(account => ({ ...account, contract, role, holder: access(address) })),
  )
  const policy = { address: contracts.TradePolicy ?? zeroAddress, abi: tradePolicyAbi }
  const registry = { address: chain.contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi }
  const oracle = { address: chain.contracts.PriceOracle, abi: priceOracleAbi }
  const fees = { address: chain.contracts.FeeManager, abi: feeManagerAbi }
  const asset = { address: chain.contracts.USDC ?? zeroAddress, abi: permitAbi }
  const signing = ['AgentRegistry', 'TradeRouter', 'OwnerControls', 'OrderBook'].flatMap(contract => {
    const address = contracts[contract]
    return address ? [{ contract, address }] : []
  })
  const { block, values } = await readTree(chain, {
    wiring: rules.map(({ address, getter: name }) => getter(address, name)),
    admins: administered.map(({ address }) => ({
      admin: optional(call(access(address), 'defaultAdmin', [])),
      pending: optional(call(access(address), 'pendingDefaultAdmin', [])),
    })),
    delay: optional(call({ address: contracts.Timelock ?? zeroAddress, abi: timelockAbi }, 'getMinDelay', [])),
    roles: roles.map(({ holder, role, address }) => optional(call(holder, 'hasRole', [roleHash(role), address]))),
    isRegistryPaused: optional(call(agentRegistry(chain), 'paused', [])),
    orderBook: optional(call({ address: chain.contracts.AgentRegistry, abi: extensionAbi }, 'orderBook', [])),
    isBookExecutor: optional(
      call(access(chain.trading.TradeRouter), 'hasRole', [
        roleHash('EXECUTOR_ROLE'),
        contracts.OrderBook ?? zeroAddress,
      ]),
    ),
    fee: {
      amount: optional(call(fees, 'getRegistrationFee', [])),
      treasury: optional(call(fees, 'treasury', [])),
      relayer: optional(call(fees, 'registrationFeeRelayer', [])),
      asset: optional(call(fees, 'feeAsset', [])),
      assetDomainSeparator: optional(call(asset, 'DOMAIN_SEPARATOR', [])),
    },
    domains: signing.map(({ address }) => optional(call(eip712Contract(address), 'eip712Domain', []))),
    prices: Object.values(chain.tokens).map(token => ({
      maxAge: optional(call(oracle, 'maxAgeOf', [token])),
      maxDeviationBps: optional(call(oracle, 'maxDeviationBpsOf', [token])),
      secondOpinion: optional(call(oracle, 'secondOpinionOf', [token])),
    })),
    vaults: Object.values(vaults).map(vault => ({
      tracks: Object.values(Track).map(track => ({
        config: optional(call(registry, 'getVaultTrackConfig', [vault, BigInt(track)])),
        capitalMode: optional(call(registry, 'capitalModeOf', [vault, BigInt(track)])),
        policy: optional(call(policy, 'limitsOf', [vault, BigInt(track)])),
        risk: optional(call(registry, 'riskTermsOf', [vault, BigInt(track)])),
      })),
      liquidityPolicy: optional(call({ address: vault, abi: mandateVaultAbi }, 'liquidityPolicy', [])),
      maxPriceAge: optional(call({ address: vault, abi: mandateVaultAbi }, 'maxPriceAge', [])),
      liquidityPaused: optional(call({ address: vault, abi: mandateVaultAbi }, 'liquidityPaused', [])),
      breaker: optional(call({ address: vault, abi: mandateVaultAbi }, 'sharePriceBreaker', [])),
      requestQueue: optional(call({ address: vault, abi: mandateVaultAbi }, 'requestQueue', [])),
    })),
  })
  const slugs = Object.keys(vaults)
  return {
    chainId: chain.id,
    block,
    contracts,
    vaults,
    wiring: rules.map(({ address: _, ...rule }, index): WiringFact => ({ ...rule, actual: values.wiring[index] })),
    admins: administered.map(({ contract }, index) => ({
      contract,
      admin: values.admins[index]?.admin,
      pending: withoutZero(values.admins[index]?.pending),
    })),
    timelock:
      contracts.Timelock !== undefined && values.delay !== undefined
        ? { address: contracts.Timelock, delaySeconds: values.delay }
        : undefined,
    roles: roles.flatMap(({ address, purpose, contract, role }, index) =>
      values.roles[index] === true ? [{ address, purpose, contract, role }] : [],
    ),
    isRegistryPaused: values.isRegistryPaused ?? false,
    orderBook: values.orderBook && { address: values.orderBook, isExecutor: values.isBookExecutor ?? false },
    fee: toFee(values.fee),
    domains: signing.map((contract, index) => {
      const domain = values.domains[index]
      return { ...contract, domain: domain && toDomain(domain) }
    }),
    prices: Object.keys(chain.tokens).map((symbol, index) => {
      const { maxAge = 0n, maxDeviationBps = 0n, secondOpinion } = values.prices[index] ?? {}
      const hasSecondOpinion = secondOpinion && secondOpinion.source !== zeroAddress
      return { symbol, maxAge, maxDeviationBps, hasSecondOpinion }
    }),
    tracks: values.vaults.flatMap(({ tracks }, index) =>
      tracks.flatMap(({ config, capitalMode, policy, risk }, trackId): TrackFact[] =>
        config && config.vault !== zeroAddress
          ? [{ vault: slugs[index] ?? '', trackId, config, capitalMode, policy, risk }]
          : [],
      ),
    ),
    vaultPolicies: values.vaults.map(
      ({ liquidityPolicy, maxPriceAge = 0n, liquidityPaused = false, breaker, requestQueue }, index) => ({
        vault: slugs[index] ?? '',
        holdingTime: liquidityPolicy?.holdingTime,
        maxMoveBps: liquidityPolicy?.maxMoveBps,
        maxPriceAge,
        liquidityPaused,
        isBreakerOpen: breaker?.isOpen === true,
        requestQueue,
      }),
    ),
  }
}

/**
 * Returns the contracts, with the extension's contracts that the others name. The admin is a timelock if it has a
 * delay.
 */
export async function discoverContracts(chain: TradingChain, named: NamedAddresses): Promise<NamedAddresses> {
  const registry = { address: chain.contracts.AgentRegistry, abi: extensionAbi }
  const router = { address: chain.trading.TradeRouter, abi: extensionAbi }
  const { values } = await readTree(chain, {
    OrderBook: optional(call(registry, 'orderBook', [])),
    OwnerControls: optional(call(registry, 'ownerControls', [])),
    PromotionCriteria: optional(call(registry, 'promotionCriteria', [])),
    TradePolicy: optional(call(router, 'tradePolicy', [])),
    SwapAdapter: getter(chain.trading.TradeRouter, 'swapAdapter'),
    Timelock: optional(call(access(chain.contracts.AgentRegistry), 'defaultAdmin', [])),
  })
  const found = Object.entries(values).flatMap(([name, address]) =>
    address && address !== zeroAddress ? [[name, getAddress(address)]] : [],
  )
  return { ...Object.fromEntries(found), ...definedOnly(named) }
}

const definedOnly = (named: NamedAddresses): NamedAddresses =>
  Object.fromEntries(Object.entries(named).filter(([, address]) => address !== undefined))

const withoutZero = (address: Address | undefined) => (address === zeroAddress ? undefined : address)

function toFee({
  amount,
  treasury,
  relayer,
  asset,
  ...domain
}: {
  [Name in keyof FeeFact]: FeeFact[Name] | undefined
}): FeeFact | undefined {
  if (amount === undefined || treasury === undefined || relayer === undefined || asset === undefined) return undefined
  return { amount, treasury, relayer, asset, ...domain }
}
