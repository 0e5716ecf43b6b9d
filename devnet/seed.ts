import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { type Address, getContractAddress, type PublicClient, parseUnits } from 'viem'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import { erc8004ReputationRegistryAbi } from '../contracts-abi/erc8004-reputation-registry.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { scaledStockTokenAbi } from '../contracts-abi/scaled-stock-token.ts'
import { stockIssuerAbi } from '../contracts-abi/stock-issuer.ts'
import { stockTokenAbi } from '../contracts-abi/stock-token.ts'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import type { Accounts } from './accounts.ts'
import { bytecodeOf } from './bytecode.ts'
import type { Market } from './market-maker.ts'
import { deployProtocolOnly } from './protocol-only/suite.ts'
import {
  EXTRA_FEES,
  embeddedConfig,
  type Listing,
  listings,
  type SeedPool,
  type SeedVault,
  usd,
  usdc,
  vaults,
} from './seed-config.ts'
import { MULTICALL3, pipelinedSender } from './sender.ts'
import { deploySuite } from './suite.ts'
import type { ExtensionContracts, ProtocolContracts } from './suite-config.ts'
import { verifySuite } from './suite-verification.ts'
import {
  addLiquidity,
  approveUniswap,
  createPool,
  deployUniswap,
  enableFees,
  rememberPrices,
  tokensWorth,
  type Uniswap,
} from './uniswap.ts'
import { deployVerifier } from './verifier.ts'

/** A deployment with protocol.md's functions only has no extension. */
export type DevnetContracts = ProtocolContracts &
  Partial<ExtensionContracts> &
  Uniswap & {
    StockIssuer: Address
    USDC: Address
    ERC8004IdentityRegistry: Address
    ERC8004ReputationRegistry: Address
    Multicall3: Address
    /** Chainlink's verifier of signed reports, where they are the source of prices. */
    VerifierProxy?: Address
  }

/** Of a chain whose dollar is not known. */
const USDC = { symbol: 'USDC', domain: { name: 'USD Coin', version: '2' }, hidesDomain: false }

/** Every token of the issuer has 18 decimals; a listing with others is a plain token. */
const SCALED_DECIMALS = 18

// A pool trades at most twice a second here, so its average reaches back half a minute.
const OBSERVATIONS = 64

export type Seeded = {
  contracts: DevnetContracts
  vaults: Record<string, Address>
  tokens: Record<string, Address>
  markets: Market[]
}

export type SeedOptions = {
  protocolOnly?: boolean | undefined
  /** Where prices come from: the updater's key by default, or reports that `reportConfig`'s signers sign. */
  priceSource?: 'updater' | 'reports' | undefined
  /** Other tokens and vaults than those of `npm run dev`. */
  venue?: { listings: readonly Listing[]; vaults: readonly SeedVault[] } | undefined
}

/**
 * Deploys everything onto a fresh chain and fills it: pools with liquidity, prices, vaults with deposits, accounts with
 * USDC.
 */
export async function seed(
  client: PublicClient,
  accounts: Accounts,
  { protocolOnly = false, priceSource = 'updater', venue = { listings, vaults } }: SeedOptions = {},
): Promise<Seeded> {
  const admin = pipelinedSender(client, accounts.admin.address)
  const USDC = await admin.deploy(dollarOf(client.chain?.id, admin.address))
  const ERC8004IdentityRegistry = await admin.deploy({
    name: 'ERC8004IdentityRegistry',
    abi: erc8004IdentityRegistryAbi,
    args: [],
  })
  const uniswap = await deployUniswap(admin)
  if (venue.listings.some(({ otherPools }) => otherPools)) await enableFees(admin, uniswap, EXTRA_FEES)
  const implementation = await admin.deploy({ name: 'ScaledStockToken', abi: scaledStockTokenAbi, args: [] })
  const StockIssuer = await admin.deploy({
    name: 'StockIssuer',
    abi: stockIssuerAbi,
    args: [implementation, admin.address],
  })
  const pools: SeedPool[] = []
  let issued = 0n
  for (const listing of venue.listings) {
    const { symbol, name, decimals, fee } = listing
    let token: Address
    const isScaled = decimals === SCALED_DECIMALS
    if (isScaled) {
      await admin.write({ address: StockIssuer, abi: stockIssuerAbi, functionName: 'deploy', args: [name, symbol] })
      token = getContractAddress({ from: StockIssuer, nonce: ++issued })
    } else {
      token = await admin.deploy({
        name: 'StockToken',
        abi: stockTokenAbi,
        args: [name, symbol, decimals, admin.address],
      })
    }
    const issuer = isScaled ? StockIssuer : undefined
    const pool = { ...listing, token, issuer, usdc: USDC, fee, price: usd(listing.price) }
    for (const each of poolsOf(pool)) await createPool(admin, uniswap, each, each.price)
    // A cheap token's pool needs more of it.
    const [usual, needed] = [parseUnits('1000000000000', decimals), 4n * tokensWorth(pool, pool.price, pool.depthUsdc)]
    const stock = needed > usual ? needed : usual
    await admin.write({
      address: token,
      abi: stockTokenAbi,
      functionName: 'mint',
      args: [accounts.marketMaker.address, stock],
    })
    pools.push(pool)
  }
  for (const [{ address }, amount] of purses(accounts, venue.vaults)) {
    await admin.write({ address: USDC, abi: usdcTokenAbi, functionName: 'mint', args: [address, amount] })
  }
  await placeMulticall3(client)

  const reportVerifier = priceSource === 'reports' ? await deployVerifier(admin) : undefined
  const around = { USDC, ERC8004IdentityRegistry, reportVerifier, uniswap, pools }
  const config = embeddedConfig(accounts, around, venue.vaults)
  const suite = await (protocolOnly ? deployProtocolOnly : deploySuite)(admin, config)
  await verifySuite(client, config, suite, admin.address)
  const ERC8004ReputationRegistry = await admin.deploy({
    name: 'ERC8004ReputationRegistry',
    abi: erc8004ReputationRegistryAbi,
    args: [ERC8004IdentityRegistry],
  })

  const marketMaker = pipelinedSender(client, accounts.marketMaker.address)
  await approveUniswap(marketMaker, uniswap, [USDC, ...pools.map(({ token }) => token)])
  const filled = pools.flatMap(poolsOf).filter(({ depthUsdc }) => depthUsdc > 0n)
  for (const pool of filled) await addLiquidity(marketMaker, uniswap, pool, pool)
  const depositor = pipelinedSender(client, accounts.depositor.address)
  for (const { slug, assets } of venue.vaults) {
    const vault = suite.vaults[slug] as Address
    await depositor.write({ address: USDC, abi: usdcTokenAbi, functionName: 'approve', args: [vault, assets] })
    await depositor.write({
      address: vault,
      abi: mandateVaultAbi,
      functionName: 'deposit',
      args: [assets, depositor.address],
    })
  }
  const updater = pipelinedSender(client, accounts.oracleUpdater.address)
  const oracle = { address: suite.contracts.PriceOracle, abi: priceOracleAbi }
  if (reportVerifier) {
    // The forcer sets the first prices; they hold until the first report.
    for (const { token, price } of pools)
      await admin.write({ ...oracle, functionName: 'forcePrice', args: [token, price] })
  } else {
    await updater.write({
      ...oracle,
      functionName: 'setPrices',
      args: [pools.map(({ token }) => token), pools.map(({ price }) => price)],
    })
  }
  const identityHolder = pipelinedSender(client, (accounts.agents[0] ?? accounts.admin).address)
  await identityHolder.write({
    address: ERC8004IdentityRegistry,
    abi: erc8004IdentityRegistryAbi,
    functionName: 'register',
    args: ['https://agents.example/first.json'],
  })
  const markets = await marketsOf(client, uniswap, filled)
  for (const { pool } of markets) await rememberPrices(marketMaker, pool, OBSERVATIONS)
  for (const sender of [admin, marketMaker, depositor, updater, identityHolder]) await sender.settle()
  return {
    contracts: {
      ...suite.contracts,
      ...uniswap,
      StockIssuer,
      USDC,
      ERC8004IdentityRegistry,
      ERC8004ReputationRegistry,
      Multicall3: MULTICALL3,
      ...(reportVerifier && { VerifierProxy: reportVerifier }),
    },
    vaults: suite.vaults,
    tokens: Object.fromEntries(pools.map(({ symbol, token }) => [symbol, token])),
    markets,
  }
}

/** The dollar as the chain of that id has it. */
export function dollarOf(chainId: number | undefined, admin: Address) {
  const { symbol, domain, hidesDomain } = (chainId === undefined ? undefined : publicChain(chainId)?.dollar) ?? USDC
  const args = [admin, domain.name, symbol, domain.version] as const
  return { name: hidesDomain ? 'UsdgToken' : 'UsdcToken', abi: usdcTokenAbi, args }
}

/** Returns the pool whose prices count, and the others. */
const poolsOf = ({ otherPools = [], ...pool }: SeedPool): SeedPool[] => [
  pool,
  ...otherPools.map(({ fee, depthUsdc, price }) => ({
    ...pool,
    fee,
    depthUsdc,
    price: price === undefined ? pool.price : usd(price),
  })),
]

function purses({ marketMaker, depositor, payer, agents }: Accounts, seedVaults: readonly SeedVault[]) {
  const deposits = seedVaults.reduce((sum, { assets }) => sum + assets, 0n)
  return [
    [marketMaker, usdc('1000000000000')],
    [depositor, usdc('10000000') + deposits],
    [payer, usdc('1000')],
    ...agents.map(agent => [agent, usdc('1000')] as const),
  ] as const
}

/** At the address where clients look for it; its creation code, run as a call, returns the runtime code. */
async function placeMulticall3(client: PublicClient): Promise<void> {
  const { data } = await client.call({ data: bytecodeOf('Multicall3') })
  await client.request<{ Method: 'anvil_setCode'; Parameters: [Address, string | undefined]; ReturnType: null }>({
    method: 'anvil_setCode',
    params: [MULTICALL3, data],
  })
}

async function marketsOf(client: PublicClient, uniswap: Uniswap, pools: SeedPool[]): Promise<Market[]> {
  const addresses = await client.multicall({
    allowFailure: false,
    contracts: pools.map(
      ({ token, usdc, fee }) =>
        ({
          address: uniswap.UniswapV3Factory,
          abi: uniswapV3FactoryAbi,
          functionName: 'getPool',
          args: [token, usdc, fee],
        }) as const,
    ),
  })
  return pools.map(({ symbol, token, decimals, usdc, fee }, index) => ({
    symbol,
    token,
    decimals,
    usdc,
    fee,
    pool: addresses[index] as Address,
  }))
}
