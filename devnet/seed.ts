import { type Address, type PublicClient, parseUnits } from 'viem'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { stockTokenAbi } from '../contracts-abi/stock-token.ts'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { CapitalMode } from '../src/protocol/enums.ts'
import type { Accounts } from './accounts.ts'
import { bytecodeOf } from './bytecode.ts'
import type { Market } from './market-maker.ts'
import { MULTICALL3, pipelinedSender } from './sender.ts'
import { deploySuite, type SuiteConfig, type SuiteContracts, type TrackPolicy, verifySuite } from './suite.ts'
import { addLiquidity, approveUniswap, createPool, deployUniswap, type Uniswap } from './uniswap.ts'

const usdc = (amount: string) => parseUnits(amount, 6)
export const usd = (price: string) => parseUnits(price, 8)
const DAY = 86_400

type Listing = { symbol: string; name: string; decimals: number; fee: number; price: string; depthUsdc: bigint }

const deep = usdc('50000000')
const listings: Listing[] = [
  { symbol: 'NVDA', name: 'NVIDIA', decimals: 18, fee: 500, price: '180.25', depthUsdc: deep },
  { symbol: 'AAPL', name: 'Apple', decimals: 18, fee: 500, price: '271.4', depthUsdc: deep },
  { symbol: 'MSFT', name: 'Microsoft', decimals: 18, fee: 500, price: '512.6', depthUsdc: deep },
  { symbol: 'AMZN', name: 'Amazon', decimals: 18, fee: 500, price: '244.2', depthUsdc: deep },
  { symbol: 'GOOGL', name: 'Alphabet', decimals: 18, fee: 500, price: '289.1', depthUsdc: deep },
  { symbol: 'META', name: 'Meta Platforms', decimals: 18, fee: 500, price: '641.75', depthUsdc: deep },
  { symbol: 'TSLA', name: 'Tesla', decimals: 8, fee: 500, price: '421.3', depthUsdc: deep },
  { symbol: 'COIN', name: 'Coinbase', decimals: 6, fee: 3000, price: '332.87', depthUsdc: deep },
  { symbol: 'PLTR', name: 'Palantir', decimals: 18, fee: 3000, price: '187.05', depthUsdc: deep },
  { symbol: 'HOOD', name: 'Robinhood', decimals: 18, fee: 3000, price: '138.6', depthUsdc: deep },
  // So thin that 1,000 USDC move it by 10 %: slippage is refused here for real.
  { symbol: 'COST', name: 'Costco', decimals: 18, fee: 3000, price: '921.5', depthUsdc: usdc('20000') },
]

const tracks = [
  { trackId: 0n, name: 'CHALLENGE', capitalMode: CapitalMode.Simulated },
  { trackId: 1n, name: 'FUNDED', capitalMode: CapitalMode.Real },
  { trackId: 2n, name: 'PRIME', capitalMode: CapitalMode.Real },
]

const genesis: TrackPolicy = {
  trackId: 0n,
  initialAllocation: usdc('10000'),
  maxAllocation: usdc('25000'),
  maxDrawdownBps: 1_000n,
  maxTradeSizeBps: 100n,
  maxDailyTurnoverBps: 5_000n,
  maxDailyLossBps: 500n,
  evaluationPeriod: BigInt(30 * DAY),
  minTrades: 10n,
  promotionScore: 60n,
  active: true,
  maxStopLossBps: 5_000n,
  minTakeProfitBps: 100n,
  maxTakeProfitBps: 20_000n,
  requireStopLoss: true,
  requireTakeProfit: false,
}
const frontier: TrackPolicy = {
  ...genesis,
  initialAllocation: usdc('5000'),
  maxAllocation: usdc('10000'),
  maxDrawdownBps: 1_500n,
  maxDailyTurnoverBps: 2_500n,
  maxDailyLossBps: 400n,
  evaluationPeriod: BigInt(14 * DAY),
  minTrades: 20n,
  promotionScore: 70n,
  maxStopLossBps: 7_500n,
  minTakeProfitBps: 300n,
  maxTakeProfitBps: 50_000n,
}

const vaults = [
  {
    slug: 'genesis',
    name: 'Genesis Vault',
    symbol: 'vGEN',
    assets: usdc('1000000'),
    tokens: ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA', 'COST'],
    policies: [
      genesis,
      {
        ...genesis,
        trackId: 1n,
        initialAllocation: usdc('50000'),
        maxAllocation: usdc('100000'),
        maxDrawdownBps: 800n,
        maxTradeSizeBps: 250n,
        maxDailyLossBps: 400n,
        minTrades: 25n,
        promotionScore: 75n,
        maxStopLossBps: 3_000n,
      },
      {
        ...genesis,
        trackId: 2n,
        initialAllocation: usdc('200000'),
        maxAllocation: usdc('500000'),
        maxDrawdownBps: 600n,
        maxTradeSizeBps: 500n,
        maxDailyTurnoverBps: 0n,
        maxDailyLossBps: 300n,
        minTrades: 50n,
        promotionScore: 85n,
        requireStopLoss: false,
      },
    ],
  },
  {
    slug: 'frontier',
    name: 'Frontier Vault',
    symbol: 'vFRO',
    assets: usdc('400000'),
    tokens: ['NVDA', 'META', 'TSLA', 'COIN', 'PLTR', 'HOOD'],
    policies: [
      frontier,
      {
        ...frontier,
        trackId: 1n,
        initialAllocation: usdc('20000'),
        maxAllocation: usdc('40000'),
        maxTradeSizeBps: 200n,
        minTrades: 40n,
        requireTakeProfit: true,
      },
      {
        ...frontier,
        trackId: 2n,
        initialAllocation: usdc('60000'),
        maxAllocation: usdc('120000'),
        maxTradeSizeBps: 400n,
        maxDailyLossBps: 0n,
        minTrades: 80n,
        promotionScore: 80n,
      },
    ],
  },
]

export type DevnetContracts = SuiteContracts &
  Uniswap & { USDC: Address; ERC8004IdentityRegistry: Address; Multicall3: Address }

export type Seeded = {
  contracts: DevnetContracts
  vaults: Record<string, Address>
  tokens: Record<string, Address>
  markets: Market[]
}

/** Deploys everything onto a fresh chain and fills it: pools with liquidity, prices, vaults with deposits, accounts with USDC. */
export async function seed(client: PublicClient, accounts: Accounts): Promise<Seeded> {
  const admin = pipelinedSender(client, accounts.admin.privateKey)
  const USDC = await admin.deploy({ name: 'UsdcToken', abi: usdcTokenAbi, args: [admin.address] })
  const ERC8004IdentityRegistry = await admin.deploy({
    name: 'ERC8004IdentityRegistry',
    abi: erc8004IdentityRegistryAbi,
    args: [],
  })
  const uniswap = await deployUniswap(admin)
  const pools = []
  for (const listing of listings) {
    const { symbol, name, decimals, fee } = listing
    const token = await admin.deploy({
      name: 'StockToken',
      abi: stockTokenAbi,
      args: [name, symbol, decimals, admin.address],
    })
    const pool = { ...listing, token, usdc: USDC, fee, price: usd(listing.price) }
    await createPool(admin, uniswap, pool, pool.price)
    const stock = parseUnits('1000000000000', decimals)
    await admin.write({
      address: token,
      abi: stockTokenAbi,
      functionName: 'mint',
      args: [accounts.marketMaker.address, stock],
    })
    pools.push(pool)
  }
  for (const [{ address }, amount] of purses(accounts)) {
    await admin.write({ address: USDC, abi: usdcTokenAbi, functionName: 'mint', args: [address, amount] })
  }
  await placeMulticall3(client)

  const config = suiteConfig(accounts, { USDC, ERC8004IdentityRegistry, uniswap, pools })
  const suite = await deploySuite(admin, config)

  const marketMaker = pipelinedSender(client, accounts.marketMaker.privateKey)
  await approveUniswap(marketMaker, uniswap, [USDC, ...pools.map(({ token }) => token)])
  for (const pool of pools) await addLiquidity(marketMaker, uniswap, pool, pool)
  const depositor = pipelinedSender(client, accounts.depositor.privateKey)
  for (const { slug, assets } of vaults) {
    const vault = suite.vaults[slug] as Address
    await depositor.write({ address: USDC, abi: usdcTokenAbi, functionName: 'approve', args: [vault, assets] })
    await depositor.write({
      address: vault,
      abi: mandateVaultAbi,
      functionName: 'deposit',
      args: [assets, depositor.address],
    })
  }
  const updater = pipelinedSender(client, accounts.oracleUpdater.privateKey)
  await updater.write({
    address: suite.contracts.PriceOracle,
    abi: priceOracleAbi,
    functionName: 'setPrices',
    args: [pools.map(({ token }) => token), pools.map(({ price }) => price)],
  })
  const identityHolder = pipelinedSender(client, (accounts.agents[0] ?? accounts.admin).privateKey)
  await identityHolder.write({
    address: ERC8004IdentityRegistry,
    abi: erc8004IdentityRegistryAbi,
    functionName: 'register',
    args: ['https://agents.example/first.json'],
  })
  const [markets] = await Promise.all([
    marketsOf(client, uniswap, pools),
    verifySuite(client, config, suite, admin.address),
    ...[marketMaker, depositor, updater, identityHolder].map(sender => sender.settle()),
  ])
  return {
    contracts: { ...suite.contracts, ...uniswap, USDC, ERC8004IdentityRegistry, Multicall3: MULTICALL3 },
    vaults: suite.vaults,
    tokens: Object.fromEntries(pools.map(({ symbol, token }) => [symbol, token])),
    markets,
  }
}

type SeedPool = Omit<Listing, 'price'> & { token: Address; usdc: Address; price: bigint }

function suiteConfig(
  accounts: Accounts,
  around: { USDC: Address; ERC8004IdentityRegistry: Address; uniswap: Uniswap; pools: SeedPool[] },
): SuiteConfig {
  const { admin, treasury, relayer, operator, executor, oracleUpdater } = accounts
  return {
    usdc: around.USDC,
    identityRegistry: around.ERC8004IdentityRegistry,
    uniswapFactory: around.uniswap.UniswapV3Factory,
    roles: {
      admin: admin.address,
      treasury: treasury.address,
      relayer: relayer.address,
      operators: [operator.address],
      registrars: [operator.address],
      executors: [executor.address],
      oracleUpdaters: [oracleUpdater.address],
      oracleForcers: [admin.address],
    },
    registrationFee: usdc('1'),
    keeperBounty: { bps: 10n, max: usdc('5') },
    tokens: around.pools.map(({ symbol, token, fee }) => ({
      symbol,
      address: token,
      fee,
      maxAge: DAY,
      maxDeviationBps: 2_000,
    })),
    tracks,
    vaults: vaults.map(({ assets: _, ...vault }) => ({ ...vault, maxPriceAge: BigInt(DAY) })),
  }
}

function purses({ marketMaker, depositor, payer, agents }: Accounts) {
  return [
    [marketMaker, usdc('1000000000000')],
    [depositor, usdc('10000000')],
    [payer, usdc('1000')],
    ...agents.map(agent => [agent, usdc('1000')] as const),
  ] as const
}

/** At the address where clients look for it; its creation code, run as a call, answers the runtime code. */
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
