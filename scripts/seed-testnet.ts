import { rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { ChainFacts } from '@agent-trading-service/protocol/chain-facts'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { type Address, getContractAddress, isAddress, parseUnits } from 'viem'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import { scaledStockTokenAbi } from '../contracts-abi/scaled-stock-token.ts'
import { stockIssuerAbi } from '../contracts-abi/stock-issuer.ts'
import { stockTokenAbi } from '../contracts-abi/stock-token.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import { exitWith } from '../devnet/environment.ts'
import { dollarOf } from '../devnet/seed.ts'
import { listings, usd, usdc } from '../devnet/seed-config.ts'
import { connect, type Sender, stepwiseSender } from '../devnet/sender.ts'
import { addLiquidity, approveUniswap, createPool, deployUniswap } from '../devnet/uniswap.ts'
import { exampleFor } from './deploy-config.ts'
import { deployerKey, openJournal } from './step-journal.ts'

const HELP = `Deploys dollars, stock tokens and Uniswap v3 pools without value on a test network, and writes a configuration for
\`npm run deploy:contracts\` that names them: fill in its accounts.
  RPC_URL=… DEPLOYER_PRIVATE_KEY=… npm run testnet:seed -- --chain robinhood-testnet --out deploy.json
  --fund <accounts>   gives each of these a million of the dollars: who deposits into vaults, who pays registrations
An interrupted run continues where it stopped when the same command runs again.`

const SYMBOLS = ['NVDA', 'AAPL', 'HOOD']
const DECIMALS = 18
/** Of each pool, in base units of the dollar per side. */
const DEPTH_USDC = usdc('5000000')
/** Besides the pool whose prices count. */
const OTHER_FEES = [10_000]

await main().catch(exitWith)

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      chain: { type: 'string' },
      out: { type: 'string' },
      fund: { type: 'string', default: '' },
      help: { type: 'boolean', default: false },
      'rpc-url': { type: 'string', default: process.env.RPC_URL ?? '' },
    },
  })
  if (values.help) return console.log(HELP)
  const facts = testNetwork(values.chain)
  const { out } = values
  const funded = values.fund.split(',').filter(account => account !== '')
  const wrong = funded.find(account => !isAddress(account))
  if (wrong !== undefined) throw new Error(`--fund has ${wrong}, which is no address with a right checksum.`)
  if (out === undefined) throw new Error('Give --out, the configuration to write.')
  if (!values['rpc-url']) throw new Error('Set RPC_URL or give --rpc-url.')
  const client = connect(values['rpc-url'], facts.chain.id)
  const actual = await client.getChainId()
  if (actual !== facts.chain.id)
    throw new Error(`The node serves chain ${actual}; ${facts.environment} is ${facts.chain.id}.`)
  const journal = openJournal(`${out}.journal`, await client.getBlockNumber())
  const sender = stepwiseSender(client, deployerKey(), { journal, log: console.log })
  const hasRegistry = (await client.getCode({ address: facts.identityRegistry })) !== undefined
  const { config, prices } = await seedTestnet(sender, facts, { hasRegistry, funded: funded as Address[] })
  writeFileSync(out, `${JSON.stringify(config, undefined, 2)}\n`)
  rmSync(`${out}.journal`, { force: true })
  const addresses = config.tokens.map(({ address }) => address)
  console.log(`Written to ${out}. Fill in its accounts under "roles", then:
  npm run deploy:contracts -- --config ${out} --out deployments/${facts.chain.id}.json
The pools stay at their prices, so post these once and let PRICE_PROVIDER=local repeat them:
  npx ats admin call 'PriceOracle.setPrices(${JSON.stringify(addresses)}, ${JSON.stringify(prices.map(String))})'`)
}

/** Returns the facts of a test network; throws for a chain with money. */
function testNetwork(name: string | undefined): ChainFacts {
  const networks = publicChains.filter(({ chain }) => chain.testnet)
  const found = networks.find(({ environment }) => environment === name)
  if (found) return found
  const names = networks.map(({ environment }) => environment).join(', ')
  throw new Error(`${name ? `${name} is no test network` : 'Name a test network'}: --chain takes one of ${names}.`)
}

/** Deploys everything around a suite, and returns its configuration with the accounts of the example. */
async function seedTestnet(
  sender: Sender,
  { chain, environment, identityRegistry }: ChainFacts,
  { hasRegistry, funded }: { hasRegistry: boolean; funded: readonly Address[] },
) {
  const dollar = await sender.deploy(dollarOf(chain.id, sender.address))
  const registry = hasRegistry
    ? identityRegistry
    : await sender.deploy({ name: 'ERC8004IdentityRegistry', abi: erc8004IdentityRegistryAbi, args: [] })
  const uniswap = await deployUniswap(sender)
  const implementation = await sender.deploy({ name: 'ScaledStockToken', abi: scaledStockTokenAbi, args: [] })
  const issuer = await sender.deploy({
    name: 'StockIssuer',
    abi: stockIssuerAbi,
    args: [implementation, sender.address],
  })
  const mintDollars = (account: Address, amount: bigint) =>
    sender.write({ address: dollar, abi: usdcTokenAbi, functionName: 'mint', args: [account, amount] })
  const listed = listings.filter(({ symbol }) => SYMBOLS.includes(symbol))
  await mintDollars(sender.address, DEPTH_USDC * BigInt(listed.length * (1 + OTHER_FEES.length)))
  const tokens: { symbol: string; address: Address; fee: number }[] = []
  const prices: bigint[] = []
  for (const { symbol, name, fee, ...listing } of listed) {
    await sender.write({ address: issuer, abi: stockIssuerAbi, functionName: 'deploy', args: [name, symbol] })
    const address = getContractAddress({ from: issuer, nonce: BigInt(tokens.length + 1) })
    const price = usd(listing.price)
    const mint = { address, abi: stockTokenAbi, functionName: 'mint' } as const
    await sender.write({ ...mint, args: [sender.address, parseUnits('10000000', DECIMALS)] })
    await approveUniswap(sender, uniswap, tokens.length === 0 ? [dollar, address] : [address])
    for (const tier of [fee, ...OTHER_FEES]) {
      const pool = { token: address, decimals: DECIMALS, usdc: dollar, fee: tier }
      await createPool(sender, uniswap, pool, price)
      await addLiquidity(sender, uniswap, pool, { price, depthUsdc: DEPTH_USDC })
    }
    tokens.push({ symbol, address, fee })
    prices.push(price)
  }
  for (const account of funded) await mintDollars(account, usdc('1000000'))
  await sender.settle()
  const example = exampleFor(environment)
  const [rules] = example.tokens
  const description = { ...rules?.description, issuer }
  const config = {
    ...example,
    usdc: dollar,
    identityRegistry: registry,
    uniswap: { factory: uniswap.UniswapV3Factory, quoter: uniswap.QuoterV2 },
    tokens: tokens.map(token => ({ ...rules, ...token, otherFees: OTHER_FEES, description })),
    vaults: example.vaults.map(vault => ({ ...vault, tokens: SYMBOLS })),
  }
  return { config, prices }
}
