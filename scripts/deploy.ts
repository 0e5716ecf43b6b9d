import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { listingProblems, rebasingAbi } from '@agent-trading-service/protocol/listing-rule'
import { BEACON_SLOT, impostorProblem } from '@agent-trading-service/protocol/token-description'
import { type Address, erc20Abi, formatUnits, isAddressEqual, type PublicClient, parseAbi, zeroAddress } from 'viem'
import { serviceReaderCode } from '../contracts-abi/service-reader-bytecode.ts'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { verifierProxyAbi } from '../contracts-abi/verifier-proxy.ts'
import { exitWith } from '../devnet/environment.ts'
import { deployProtocolOnly } from '../devnet/protocol-only/suite.ts'
import { connect, type Journal, MULTICALL3, type Sender, stepwiseSender } from '../devnet/sender.ts'
import { deployReader, deploySuite } from '../devnet/suite.ts'
import { hasExtension, type ProtocolSuite, type Suite, type SuiteConfig } from '../devnet/suite-config.ts'
import { separatePowers } from '../devnet/suite-roles.ts'
import { verifySuite } from '../devnet/suite-verification.ts'
import { rememberPrices } from '../devnet/uniswap.ts'
import {
  type ConfigFile,
  checkChain,
  checkLocks,
  checkPowers,
  exampleFor,
  isEmbedded,
  readConfig,
  refusal,
  suiteConfig,
} from './deploy-config.ts'
import { writeDeploymentVars } from './deployment-vars.ts'
import { deployerKey, openJournal } from './step-journal.ts'

const HELP = `Deploys and wires the whole suite on any chain, reads everything back, and writes a deployment file.
  npm run --silent deploy:contracts -- --example robinhood > deploy.json   prints a configuration with a chain's addresses (docs/chains.md)
  RPC_URL=… DEPLOYER_PRIVATE_KEY=… npm run deploy:contracts -- --config deploy.json --out deployments/421614.json
  RPC_URL=… npm run deploy:contracts -- --config deploy.json --verify deployments/421614.json   reads the wiring back, sends nothing
  RPC_URL=… DEPLOYER_PRIVATE_KEY=… npm run deploy:contracts -- --reader deployments/421614.json   deploys this version's ServiceReader
  npm run deploy:contracts -- --vars deployments/421614.json   writes the Worker's variables into wrangler.toml and .dev.vars.<environment>
  --protocol-only deploys the protocol without our extension (no timelock, no trade policy, no simulated capital), for tests.
An interrupted run continues where it stopped when the same command runs again.
One key must not hold two powers, except on the embedded chain (31337) and with "embedded": true in the configuration, which no chain
with real money accepts.`

// Each observation takes a new storage slot, so they are added over several transactions.
const OBSERVATIONS_PER_STEP = 100

/** What Chainlink's verifier of signed reports says that it is. */
const VERIFIER = 'VerifierProxy 2.0.0'

/** How far a push feed may be from the token's pool before it looks like another token's. */
const MAX_FEED_DIFFERENCE_PERCENT = 20n

const aggregatorAbi = parseAbi([
  'function decimals() view returns (uint8)',
  'function description() view returns (string)',
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
])

/** The powers of people, whose accounts need ether in an emergency. The Worker watches its own accounts. */
const PEOPLES_POWERS = /^(guardians|timelock\.proposers|oracleForcers|operators\..+)$/

type DeploymentFile = {
  chainId: number
  deployer: Address
  deployedAtBlock: string
  contracts: Record<string, Address>
  vaults: Record<string, Address>
  tokens: Record<string, Address>
  watchedAccounts: Record<string, Address>
}

await main().catch(exitWith)

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      config: { type: 'string' },
      out: { type: 'string' },
      verify: { type: 'string' },
      vars: { type: 'string' },
      reader: { type: 'string' },
      wrangler: { type: 'string', default: join(import.meta.dirname, '../wrangler.toml') },
      'protocol-only': { type: 'boolean', default: false },
      example: { type: 'string' },
      help: { type: 'boolean', default: false },
      'rpc-url': { type: 'string', default: process.env.RPC_URL ?? '' },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.example !== undefined) return console.log(JSON.stringify(exampleFor(values.example), undefined, 2))
  if (values.vars) return writeVars(readJson(values.vars) as DeploymentFile, values.wrangler)
  if (values.reader) return deployReaderOf(values.reader, values['rpc-url'])
  const config = readConfig(values.config)
  const client = await connectTo(values['rpc-url'], config.chainId)
  checkPowers(config)
  checkChain(config)
  checkLocks(config)
  if (values.verify) return verify(client, config, readJson(values.verify) as DeploymentFile)
  if (!values.out) throw new Error('Give --out, the deployment file to write.')
  if (values['protocol-only'] && !isEmbedded(config))
    throw refusal(["--protocol-only leaves the vaults' money unprotected; it is for the embedded chain only"])
  await deploy(client, config, values.out, values['protocol-only'] ? deployProtocolOnly : deploySuite)
}

async function deploy(
  client: PublicClient,
  config: ConfigFile,
  out: string,
  deployContracts: (sender: Sender, config: SuiteConfig) => Promise<ProtocolSuite>,
): Promise<void> {
  const privateKey = deployerKey()
  const pools = await inspect(client, config)
  const journalPath = `${out}.journal`
  mkdirSync(dirname(out), { recursive: true })
  const { startedAtBlock, ...journal } = openJournal(journalPath, await client.getBlockNumber())
  const sender = stepwiseSender(client, privateKey, { journal, log: console.log })
  const suite = await deployContracts(sender, suiteConfig(config))
  for (const { pool, from, to } of pools) {
    for (let kept = from; kept < to; kept += OBSERVATIONS_PER_STEP) {
      await rememberPrices(sender, pool, Math.min(kept + OBSERVATIONS_PER_STEP, to))
    }
  }
  const deployment: DeploymentFile = {
    chainId: config.chainId,
    deployer: sender.address,
    deployedAtBlock: startedAtBlock,
    contracts: { ...suite.contracts, ...around(config) },
    vaults: suite.vaults,
    tokens: Object.fromEntries(config.tokens.map(({ symbol, address }) => [symbol, address])),
    watchedAccounts: await accountsToWatch(client, config),
  }
  await verify(client, config, deployment)
  writeFileSync(out, `${JSON.stringify(deployment, null, 2)}\n`)
  rmSync(journalPath, { force: true })
  console.log('Who may act, besides the timelock as admin of every contract:')
  for (const [power, holders] of separatePowers(config.roles))
    console.log(`  ${power.padEnd(29)} ${holders.join(', ') || 'nobody'}`)
  console.log(`Written to ${out}. For the Worker's variables: npm run deploy:contracts -- --vars ${out}`)
}

/** Returns the accounts of people by what they may do. A contract, such as a multisig, pays for no gas. */
async function accountsToWatch(client: PublicClient, { roles }: ConfigFile): Promise<Record<string, Address>> {
  const named = separatePowers(roles).flatMap(([power, accounts]) =>
    PEOPLES_POWERS.test(power)
      ? accounts.map((account, index): [string, Address] => [index === 0 ? power : `${power} ${index + 1}`, account])
      : [],
  )
  const codes = await Promise.all(named.map(([, address]) => client.getCode({ address })))
  return Object.fromEntries(named.filter((_, index) => codes[index] === undefined))
}

/** Deploys the ServiceReader of this version, unless the deployment has it, and names it in the deployment file. */
async function deployReaderOf(path: string, rpcUrl: string): Promise<void> {
  const deployment = readJson(path) as DeploymentFile
  const client = await connectTo(rpcUrl, deployment.chainId)
  const { ServiceReader: known } = deployment.contracts
  if (known !== undefined && (await client.getCode({ address: known })) === serviceReaderCode)
    return console.log(`The deployment has the ServiceReader of this version: ${known}.`)
  const journal: Journal = { done: new Map(), add: () => {} }
  const ServiceReader = await deployReader(stepwiseSender(client, deployerKey(), { journal, log: console.log }))
  const contracts = { ...deployment.contracts, ServiceReader }
  writeFileSync(path, `${JSON.stringify({ ...deployment, contracts }, null, 2)}\n`)
  console.log(`Written to ${path}. For the Worker's variables: npm run deploy:contracts -- --vars ${path}`)
}

function writeVars(deployment: DeploymentFile, wranglerToml: string): void {
  const { environment, files } = writeDeploymentVars(deployment, wranglerToml)
  console.log(`Written to ${files.join(' and ')}. Fill in the secrets in the second, then:
  npm run deploy -- --env ${environment} --secrets`)
}

async function verify(
  client: PublicClient,
  config: ConfigFile,
  { deployer, contracts, vaults }: DeploymentFile,
): Promise<void> {
  const suite: ProtocolSuite = { contracts: contracts as Suite['contracts'], vaults }
  const count = await verifySuite(client, suiteConfig(config), suite, deployer)
  const extent = hasExtension(suite) ? '' : ' The deployment has no extension: its admin acts without a delay.'
  console.log(`Verified: ${count} wired values and roles are as configured.${extent}`)
}

/** A pool, how many observations it keeps, and how many it shall keep. */
type PoolMemory = { pool: Address; from: number; to: number }

/** Refuses what could only fail half way: missing contracts, pools that are absent or have no price, wrong decimals. */
async function inspect(client: PublicClient, config: ConfigFile): Promise<PoolMemory[]> {
  const problems: string[] = []
  const contracts: Record<string, Address> = { ...around(config), Multicall3: MULTICALL3 }
  if (config.reportVerifier) contracts.reportVerifier = config.reportVerifier
  for (const { symbol, address, source } of config.tokens) {
    contracts[symbol] = address
    if (source?.kind === 'feed') contracts[`${symbol}'s push feed`] = source.aggregator
  }
  await Promise.all(
    Object.entries(contracts).map(async ([name, address]) => {
      if (address !== zeroAddress && !(await client.getCode({ address })))
        problems.push(`${name}: no code at ${address}`)
    }),
  )
  if (problems.length > 0) throw refusal(problems)
  const decimals = await client.readContract({ address: config.usdc, abi: erc20Abi, functionName: 'decimals' })
  problems.push(...(await checkVerifier(client, config)))
  if (decimals !== 6) problems.push(`usdc: ${config.usdc} has ${decimals} decimals, not 6`)
  for (const { symbol, address, description } of config.tokens) {
    const slot = await client.getStorageAt({ address, slot: BEACON_SLOT })
    const impostor = impostorProblem({ symbol, address }, description.issuer, slot)
    if (impostor) problems.push(impostor)
  }
  const tiers = config.tokens.flatMap(({ fee, otherFees, ...token }) =>
    [fee, ...otherFees].map(tier => ({ ...token, fee: tier, isFirst: tier === fee })),
  )
  const pools = await Promise.all(
    tiers.map(async ({ symbol, address, fee, observations, isFirst, source }) => {
      const pool = await client.readContract({
        address: config.uniswap.factory,
        abi: uniswapV3FactoryAbi,
        functionName: 'getPool',
        args: [config.usdc, address, fee],
      })
      if (pool === zeroAddress) {
        problems.push(`${symbol}: Uniswap has no pool of USDC and ${address} with fee ${fee}`)
        return []
      }
      const [sqrtPrice, , , , kept] = await client.readContract({
        address: pool,
        abi: uniswapV3PoolAbi,
        functionName: 'slot0',
      })
      if (sqrtPrice === 0n) problems.push(`${symbol}: the pool ${pool} has no price yet`)
      if (!isFirst) return []
      if (sqrtPrice !== 0n) problems.push(...(await checkListing(client, { symbol, address, pool, source })))
      return [{ pool, from: kept, to: observations }]
    }),
  )
  if (problems.length > 0) throw refusal(problems)
  return pools.flat()
}

/** Returns why signed reports cannot be verified. */
async function checkVerifier(client: PublicClient, { reportVerifier }: ConfigFile): Promise<string[]> {
  if (!reportVerifier) return []
  const name = await client
    .readContract({ address: reportVerifier, abi: verifierProxyAbi, functionName: 'typeAndVersion' })
    .catch(() => 'a contract without typeAndVersion')
  return name === VERIFIER ? [] : [`reportVerifier: ${reportVerifier} is ${name}, not ${VERIFIER}`]
}

/** Returns why a push feed cannot be the source of a token that costs `price`, in USD with 8 decimals. */
async function checkPushFeed(
  client: PublicClient,
  { symbol, aggregator, price }: { symbol: string; aggregator: Address; price: bigint },
): Promise<string[]> {
  const feed = { address: aggregator, abi: aggregatorAbi }
  try {
    const [decimals, description, [, answer]] = await Promise.all([
      client.readContract({ ...feed, functionName: 'decimals' }),
      client.readContract({ ...feed, functionName: 'description' }),
      client.readContract({ ...feed, functionName: 'latestRoundData' }),
    ])
    const scaled = (answer * 10n ** 8n) / 10n ** BigInt(decimals)
    const difference = scaled > price ? scaled - price : price - scaled
    if (difference * 100n <= price * MAX_FEED_DIFFERENCE_PERCENT) return []
    const prices = `${formatUnits(scaled, 8)} USD, its pool ${formatUnits(price, 8)} USD`
    return [`${symbol}: the push feed ${aggregator} ("${description}") says ${prices}; is it another token's?`]
  } catch {
    return [`${symbol}: ${aggregator} is no push feed (AggregatorV3)`]
  }
}

/** Returns why a token must not be listed, at the present price of its pool. */
async function checkListing(
  client: PublicClient,
  {
    symbol,
    address,
    pool,
    source,
  }: Pick<ConfigFile['tokens'][number], 'symbol' | 'address' | 'source'> & { pool: Address },
): Promise<string[]> {
  const decimals = await client.readContract({ address, abi: erc20Abi, functionName: 'decimals' })
  const [[sqrtPrice], token0] = await Promise.all([
    client.readContract({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' }),
    client.readContract({ address: pool, abi: uniswapV3PoolAbi, functionName: 'token0' }),
  ])
  const scale = 100n * 10n ** BigInt(decimals)
  const squared = sqrtPrice ** 2n
  const price = isAddressEqual(token0, address) ? (scale * squared) >> 192n : (scale << 192n) / squared
  const probes = await Promise.all(
    rebasingAbi.map(({ name, inputs }) =>
      client
        .readContract({ address, abi: rebasingAbi, functionName: name, args: inputs.length > 0 ? [pool] : [] } as never)
        .then(
          () => true,
          () => false,
        ),
    ),
  )
  return [
    ...listingProblems({ symbol, decimals, price, isRebasing: probes.includes(true) }),
    ...(source?.kind === 'feed' && !source.isSharePrice
      ? await checkPushFeed(client, { symbol, aggregator: source.aggregator, price })
      : []),
  ]
}

function around({ usdc, identityRegistry, uniswap }: ConfigFile): Record<string, Address> {
  return {
    USDC: usdc,
    ...(identityRegistry !== zeroAddress && { ERC8004IdentityRegistry: identityRegistry }),
    Multicall3: MULTICALL3,
    UniswapV3Factory: uniswap.factory,
    ...(uniswap.quoter && { QuoterV2: uniswap.quoter }),
  }
}

async function connectTo(rpcUrl: string, chainId: number): Promise<PublicClient> {
  if (!rpcUrl) throw new Error('Set RPC_URL or give --rpc-url.')
  const client = connect(rpcUrl, chainId)
  const actual = await client.getChainId()
  if (actual !== chainId) throw new Error(`The node serves chain ${actual}, the configuration is for ${chainId}.`)
  return client
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'))
}
