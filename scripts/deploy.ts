import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { type Address, erc20Abi, getAddress, type Hex, isAddress, type PublicClient, zeroAddress } from 'viem'
import { z } from 'zod'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { exitWith } from '../devnet/environment.ts'
import { connect, type Journal, MULTICALL3, stepwiseSender } from '../devnet/sender.ts'
import { deploySuite, type Suite, type SuiteConfig, verifySuite } from '../devnet/suite.ts'
import { addressVars } from '../devnet/worker-vars.ts'

const HELP = `Deploys and wires the whole suite on any chain, reads everything back, and writes a deployment file.
  RPC_URL=… DEPLOYER_PRIVATE_KEY=… npm run deploy:contracts -- --config deploy.json --out deployments/421614.json
  RPC_URL=… npm run deploy:contracts -- --config deploy.json --verify deployments/421614.json   reads the wiring back, sends nothing
  npm run deploy:contracts -- --vars deployments/421614.json                                    prints the Worker's variables
What was interrupted goes on where it ended when the same command runs again. scripts/deploy.example.json shows a configuration.`

const address = z
  .string()
  .refine(value => isAddress(value), 'must be an address with a right checksum')
  .transform(value => getAddress(value))
const units = z
  .string()
  .regex(/^[0-9]+$/, 'must be base units as digits')
  .transform(BigInt)
const bps = z.number().int().nonnegative().transform(BigInt)
const seconds = z.number().int().nonnegative()
const roleHolders = z.array(address).default([])

const configFile = z.strictObject({
  chainId: z.number().int().positive(),
  usdc: address,
  identityRegistry: address.default(zeroAddress),
  uniswap: z.strictObject({ factory: address, quoter: address.optional() }),
  sequencerFeed: z.strictObject({ address, gracePeriodSeconds: seconds.transform(BigInt) }).optional(),
  roles: z.strictObject({
    admin: address,
    treasury: address,
    relayer: address,
    operators: roleHolders,
    registrars: roleHolders,
    executors: roleHolders,
    oracleUpdaters: roleHolders,
    oracleForcers: roleHolders,
  }),
  registrationFee: units,
  keeperBounty: z.strictObject({ bps, max: units }),
  tokens: z.array(
    z.strictObject({
      symbol: z.string().min(1),
      address,
      fee: z.number().int(),
      maxAge: seconds,
      maxDeviationBps: z.number().int().nonnegative(),
    }),
  ),
  tracks: z.array(
    z.strictObject({
      trackId: bps,
      name: z.string().min(1).max(32),
      capitalMode: z.union([z.literal(0), z.literal(1)]),
    }),
  ),
  vaults: z.array(
    z.strictObject({
      slug: z.string().regex(/^[a-z0-9-]{1,32}$/),
      name: z.string().min(1),
      symbol: z.string().min(1),
      maxPriceAge: seconds.transform(BigInt),
      tokens: z.array(z.string()),
      policies: z.array(
        z.strictObject({
          trackId: bps,
          initialAllocation: units,
          maxAllocation: units,
          maxDrawdownBps: bps,
          maxTradeSizeBps: bps,
          maxDailyTurnoverBps: bps,
          maxDailyLossBps: bps,
          evaluationPeriod: seconds.transform(BigInt),
          minTrades: bps,
          promotionScore: bps,
          active: z.boolean(),
          maxStopLossBps: bps,
          minTakeProfitBps: bps,
          maxTakeProfitBps: bps,
          requireStopLoss: z.boolean(),
          requireTakeProfit: z.boolean(),
        }),
      ),
    }),
  ),
})
type ConfigFile = z.output<typeof configFile>

type DeploymentFile = {
  chainId: number
  deployer: Address
  deployedAtBlock: string
  contracts: Record<string, Address>
  vaults: Record<string, Address>
  tokens: Record<string, Address>
}

await main().catch(exitWith)

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      config: { type: 'string' },
      out: { type: 'string' },
      verify: { type: 'string' },
      vars: { type: 'string' },
      help: { type: 'boolean', default: false },
      'rpc-url': { type: 'string', default: process.env.RPC_URL ?? '' },
    },
  })
  if (values.help) return console.log(HELP)
  if (values.vars) return console.log(JSON.stringify(addressVars(readJson(values.vars) as DeploymentFile), null, 2))
  const config = readConfig(values.config)
  const client = await connectTo(values['rpc-url'], config.chainId)
  if (values.verify) return verify(client, config, readJson(values.verify) as DeploymentFile)
  if (!values.out) throw new Error('Give --out, the deployment file to write.')
  await deploy(client, config, values.out)
}

async function deploy(client: PublicClient, config: ConfigFile, out: string): Promise<void> {
  const privateKey = process.env.DEPLOYER_PRIVATE_KEY as Hex | undefined
  if (!privateKey || !/^0x[0-9a-fA-F]{64}$/.test(privateKey))
    throw new Error('Set DEPLOYER_PRIVATE_KEY (0x and 64 hex digits).')
  await inspect(client, config)
  const journalPath = `${out}.journal`
  mkdirSync(dirname(out), { recursive: true })
  const sender = stepwiseSender(client, privateKey, { journal: openJournal(journalPath), log: console.log })
  const deployedAtBlock = await client.getBlockNumber()
  const suite = await deploySuite(sender, suiteConfig(config))
  const deployment: DeploymentFile = {
    chainId: config.chainId,
    deployer: sender.address,
    deployedAtBlock: `${deployedAtBlock}`,
    contracts: { ...suite.contracts, ...around(config) },
    vaults: suite.vaults,
    tokens: Object.fromEntries(config.tokens.map(({ symbol, address }) => [symbol, address])),
  }
  await verify(client, config, deployment)
  writeFileSync(out, `${JSON.stringify(deployment, null, 2)}\n`)
  rmSync(journalPath, { force: true })
  console.log(`Written to ${out}. The Worker's variables: npm run deploy -- --vars ${out}`)
}

async function verify(
  client: PublicClient,
  config: ConfigFile,
  { deployer, contracts, vaults }: DeploymentFile,
): Promise<void> {
  const suite: Suite = { contracts: contracts as Suite['contracts'], vaults }
  const count = await verifySuite(client, suiteConfig(config), suite, deployer)
  console.log(`Verified: ${count} wired values and roles are as configured.`)
}

/** Refuses what could only fail half way: missing contracts, pools that are absent or empty of a price, wrong decimals. */
async function inspect(client: PublicClient, config: ConfigFile): Promise<void> {
  const problems: string[] = []
  const contracts: Record<string, Address> = { ...around(config), Multicall3: MULTICALL3 }
  for (const { symbol, address } of config.tokens) contracts[symbol] = address
  await Promise.all(
    Object.entries(contracts).map(async ([name, address]) => {
      if (address !== zeroAddress && !(await client.getCode({ address })))
        problems.push(`${name}: no code at ${address}`)
    }),
  )
  if (problems.length > 0) throw refusal(problems)
  const decimals = await client.readContract({ address: config.usdc, abi: erc20Abi, functionName: 'decimals' })
  if (decimals !== 6) problems.push(`usdc: ${config.usdc} has ${decimals} decimals, not 6`)
  await Promise.all(
    config.tokens.map(async ({ symbol, address, fee }) => {
      const pool = await client.readContract({
        address: config.uniswap.factory,
        abi: uniswapV3FactoryAbi,
        functionName: 'getPool',
        args: [config.usdc, address, fee],
      })
      if (pool === zeroAddress)
        return problems.push(`${symbol}: Uniswap has no pool of USDC and ${address} with fee ${fee}`)
      const [sqrtPrice] = await client.readContract({ address: pool, abi: uniswapV3PoolAbi, functionName: 'slot0' })
      if (sqrtPrice === 0n) problems.push(`${symbol}: the pool ${pool} has no price yet`)
    }),
  )
  if (problems.length > 0) throw refusal(problems)
}

function refusal(problems: string[]): Error {
  return new Error(`Nothing was sent:\n- ${problems.join('\n- ')}`)
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

function suiteConfig({ chainId: _, uniswap, ...config }: ConfigFile): SuiteConfig {
  return { ...config, uniswapFactory: uniswap.factory }
}

async function connectTo(rpcUrl: string, chainId: number): Promise<PublicClient> {
  if (!rpcUrl) throw new Error('Set RPC_URL or give --rpc-url.')
  const client = connect(rpcUrl, chainId)
  const actual = await client.getChainId()
  if (actual !== chainId) throw new Error(`The node serves chain ${actual}, the configuration is for ${chainId}.`)
  return client
}

function readConfig(path: string | undefined): ConfigFile {
  if (!path) throw new Error('Give --config, the JSON file of what to deploy (scripts/deploy.example.json shows one).')
  const parsed = configFile.safeParse(readJson(path))
  if (!parsed.success) throw new Error(`${path} is not usable:\n${z.prettifyError(parsed.error)}`)
  return parsed.data
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** One line per mined step, appended as it is mined. */
function openJournal(path: string): Journal {
  const done = new Map<Hex, Address | null>()
  try {
    for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
      const [step, contract] = JSON.parse(line) as [Hex, Address | null]
      done.set(step, contract)
    }
    console.log(`Going on after ${done.size} steps of ${path}.`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return {
    done,
    add(step, contract) {
      done.set(step, contract)
      appendFileSync(path, `${JSON.stringify([step, contract])}\n`)
    },
  }
}
