import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ChainFacts } from '@agent-trading-service/protocol/chain-facts'
import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { domainSeparator, isAddress } from 'viem'
import { afterAll, describe, expect, it } from 'vitest'
import { CHAINS_FOLDER, chainsModule, chainsPage } from '../../scripts/chains.ts'
import { checkChain, checkPowers, exampleFor, readConfig } from '../../scripts/deploy-config.ts'
import { parseConfig } from '../../src/config/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'chains-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const address = '0x00000000000000000000000000000000000000a1'
const contracts = {
  AgentRegistry: address,
  VaultTrackRegistry: address,
  FeeManager: address,
  TokenRegistry: address,
  PriceOracle: address,
}
const configOf = (vars: Record<string, string>) =>
  parseConfig({ RPC_URL: 'http://127.0.0.1:1', CONTRACTS: JSON.stringify(contracts), ...vars })

it('a file in the folder of chains makes a chain known, and one that is not usable is refused with its values', () => {
  const copy = join(folder, 'chains')
  cpSync(CHAINS_FOLDER, copy, { recursive: true })
  const example = readFileSync(join(copy, 'robinhood.toml'), 'utf8')
  writeFileSync(join(copy, 'new-chain.toml'), example.replace('viem = "robinhood"', 'viem = "optimism"'))
  expect(chainsModule(copy)).toContain(
    'import { arbitrum, arbitrumSepolia, optimism, robinhood, robinhoodTestnet } from',
  )
  expect(chainsModule(copy)).toMatch(/chain: optimism, gasPrices: .* environment: "new-chain"/)
  writeFileSync(join(copy, 'new-chain.toml'), example.replace('USDG"\naddress = "0x5fc', 'USDG"\naddress = "0x5fd'))
  expect(() => chainsModule(copy)).toThrow(/new-chain\.toml is not usable:\n.*checksum\n.*dollar\.address/)
})

it('a new chain is one file and no code: the list has it, with its page, its environment and its example', async () => {
  const copy = join(folder, 'one-more')
  cpSync(CHAINS_FOLDER, copy, { recursive: true })
  const example = readFileSync(join(copy, 'robinhood.toml'), 'utf8')
  writeFileSync(join(copy, 'new-chain.toml'), example.replace('viem = "robinhood"', 'viem = "optimism"'))
  // It imports viem/chains, so it stands where packages are found.
  const listed = mkdtempSync(join(import.meta.dirname, '../../.chains-'))
  try {
    writeFileSync(join(listed, 'public-chains.ts'), chainsModule(copy))
    const chains: { publicChains: ChainFacts[] } = await import(/* @vite-ignore */ join(listed, 'public-chains.ts'))
    const added = chains.publicChains.find(({ environment }) => environment === 'new-chain')
    expect(added).toMatchObject({ chain: { id: 10 }, dollar: { symbol: 'USDG', hidesDomain: true } })
    expect(chains.publicChains).toEqual([...publicChains, added].sort(byEnvironment))
    expect(chainsPage(chains.publicChains)).toMatch(/\| id \|.* 10 \|/)
  } finally {
    rmSync(listed, { recursive: true })
  }
})
const byEnvironment = (a: ChainFacts | undefined, b: ChainFacts | undefined) =>
  `${a?.environment}` < `${b?.environment}` ? -1 : 1

it('every chain has an id, an environment and addresses of its own form', () => {
  expect(publicChains.map(({ chain }) => chain.id)).toEqual([42161, 421614, 4663, 46630])
  expect(new Set(publicChains.map(({ environment }) => environment)).size).toBe(publicChains.length)
  for (const { dollar, uniswap, uptimeFeed, identityRegistry, reportVerifier } of publicChains)
    for (const value of [
      dollar.address,
      uniswap?.factory,
      uniswap?.quoter,
      uptimeFeed,
      identityRegistry,
      reportVerifier,
    ])
      if (value !== undefined) expect(isAddress(value)).toBe(true)
  for (const { chain, dollar } of publicChains)
    expect(chainsPage(publicChains)).toMatch(new RegExp(`${chain.name}[\\s\\S]*${dollar.address}`))
})

it('the domain of the dollar on 4663 is the one that its DOMAIN_SEPARATOR hashes, which the token does not tell', () => {
  const { dollar } = publicChain(4663) as ChainFacts
  const domain = { ...dollar.domain, chainId: 4663, verifyingContract: dollar.address }
  expect(domainSeparator({ domain })).toMatch(/^0x7a3d7400.*2036$/)
  expect(configOf({ CHAIN_ID: '4663', X402_ENABLED: 'true' }).payment).toMatchObject({
    assetName: 'Global Dollar',
    assetVersion: '1',
  })
  expect(configOf({ CHAIN_ID: '42161', X402_ENABLED: 'true' }).payment).toMatchObject({
    assetName: 'USD Coin',
    assetVersion: '2',
  })
})

const conveniences = {
  DEVELOPMENT_CHAIN: 'true',
  PRICE_PROVIDER: 'local',
  WEBHOOK_LOCAL_TARGETS: 'true',
  REHEARSAL_URL: 'http://127.0.0.1:1',
}

it.each(['4663', '42161', '84532', '11155111', '1337', '31338', '99999'])(
  'chain %s counts as one with real money, and refuses each convenience of development by its name',
  id => {
    const config = configOf({ CHAIN_ID: id, ...conveniences })
    expect(config).toMatchObject({ chain: { isDevelopment: false, isEmbedded: false } })
    expect(config.problems.map(problem => problem.split(':', 1)[0]).sort()).toEqual(Object.keys(conveniences).sort())
    const { priceProvider, priceRefresh, webhooks, rehearsalUrl, gasPrices } = config
    expect({ priceProvider, priceRefresh, webhooks, rehearsalUrl }).toEqual({})
    expect(gasPrices).toBeDefined()
    expect(parsePowers({ chainId: Number(id), embedded: true })).toThrow(
      `embedded must not be true: chain ${id} counts as one with real money`,
    )
  },
)

it.each(['421614', '46630', '31337'])('chain %s has no money, and permits the conveniences of development', id => {
  const config = configOf({ CHAIN_ID: id, ...conveniences })
  expect(config).toMatchObject({
    chain: { isDevelopment: true },
    priceProvider: { kind: 'local' },
    priceRefresh: { intervalMs: expect.any(Number) },
    webhooks: { allowsLocalTargets: true },
    rehearsalUrl: conveniences.REHEARSAL_URL,
    gasPrices: undefined,
    problems: [],
  })
  expect(parsePowers({ chainId: Number(id), embedded: true })).not.toThrow()
})

const parsePowers = (changes: { chainId: number; embedded: boolean }) => () => {
  const path = join(folder, 'powers.json')
  writeFileSync(path, JSON.stringify({ ...exampleFor('robinhood'), ...changes }))
  checkPowers(readConfig(path))
}

describe('an embedded chain with the id of Robinhood Chain', () => {
  const withDollar = (USDC?: string) => JSON.stringify({ ...contracts, ...(USDC && { USDC }) })
  const embedded = {
    ...conveniences,
    CHAIN_ID: '4663',
    DEVELOPMENT_CHAIN: 'embedded',
    CONTRACTS: withDollar('0x5FbDB2315678afecb367f032d93F642f64180aa3'),
  }

  it('permits the conveniences of development, and is not taken for the public chain', () => {
    expect(configOf(embedded)).toMatchObject({
      chain: { id: 4663, isDevelopment: true, isEmbedded: true },
      chainName: 'Embedded chain, not Robinhood Chain',
      explorerUrl: undefined,
      publicRpcUrl: 'http://127.0.0.1:1',
      priceProvider: { kind: 'local' },
      problems: [],
    })
  })

  it.each([
    ['the dollar of the public chain', { CONTRACTS: withDollar(publicChain(4663)?.dollar.address) }],
    ['no dollar', { CONTRACTS: withDollar() }],
    ['a node elsewhere', { RPC_URL: 'https://rpc.mainnet.chain.robinhood.com' }],
    ['a second node elsewhere', { RPC_URL: 'http://127.0.0.1:1,https://rpc.mainnet.chain.robinhood.com' }],
  ])('is refused with %s, and counts as the public chain', (_, changes) => {
    const config = configOf({ ...embedded, ...changes })
    expect(config).toMatchObject({
      chain: { isDevelopment: false, isEmbedded: false },
      chainName: 'Robinhood Chain',
      explorerUrl: 'https://robinhoodchain.blockscout.com',
    })
    expect(config.problems.map(problem => problem.split(':', 1)[0]).sort()).toEqual(Object.keys(conveniences).sort())
  })
})

it('configurations of known chains have their name, explorer, public node and gas prices', () => {
  expect(configOf({ CHAIN_ID: '4663' })).toMatchObject({
    chainName: 'Robinhood Chain',
    explorerUrl: 'https://robinhoodchain.blockscout.com',
    publicRpcUrl: 'https://rpc.mainnet.chain.robinhood.com',
    gasPrices: { expectedWei: 60_000_000n, maxWei: 5_000_000_000n },
  })
  expect(configOf({ CHAIN_ID: '46630' }).chain).toMatchObject({ makesBlocksOnDemand: true })
  const unknown = configOf({ CHAIN_ID: '99999' })
  expect([unknown.chainName, unknown.explorerUrl, unknown.publicRpcUrl]).toEqual([undefined, undefined, undefined])
})

it.each(publicChains)(
  'the example for $environment is complete, and keeps the uptime feed and the verifier that the chain has',
  facts => {
    const path = join(folder, `${facts.environment}.json`)
    const example = exampleFor(facts.environment)
    writeFileSync(path, JSON.stringify(example))
    const config = readConfig(path)
    expect(config).toMatchObject({ chainId: facts.chain.id, usdc: facts.dollar.address })
    if (facts.stockIssuer !== undefined)
      expect(config.tokens.map(({ description }) => description.issuer)).toEqual([facts.stockIssuer])
    expect(() => checkChain(config)).not.toThrow()
    if (facts.uptimeFeed !== undefined)
      expect(() => checkChain({ ...config, sequencerFeed: undefined })).toThrow(`uptime feed ${facts.uptimeFeed}`)
    const zero = `0x${'00'.repeat(19)}01` as const
    expect(config.reportVerifier).toBe(facts.reportVerifier)
    expect(() => checkChain({ ...config, reportVerifier: zero })).toThrow(
      `reportVerifier is ${zero}; chain ${facts.chain.id} has ${facts.reportVerifier}`,
    )
    expect(() => exampleFor('nowhere')).toThrow('takes one of arbitrum, arbitrum-sepolia, robinhood, robinhood-testnet')
  },
)

it('counts blocks on a chain that has no uptime feed and makes blocks without transactions, and on no other', () => {
  const counted = publicChains.filter(({ environment }) => 'blockUptime' in exampleFor(environment))
  expect(counted.map(({ environment }) => environment)).toEqual(['arbitrum-sepolia', 'robinhood'])
  const robinhood = exampleConfig('robinhood')
  expect(robinhood.blockUptime).toEqual({ maxBlockMs: 125n, maxGapSeconds: 300n, gracePeriodSeconds: 3_600n })
  const { blockUptime } = robinhood
  expect(() => checkChain({ ...exampleConfig('robinhood-testnet'), blockUptime })).toThrow(
    'blockUptime: chain 46630 makes no blocks without transactions, so their number says nothing',
  )
  expect(() => checkChain({ ...exampleConfig('arbitrum'), blockUptime })).toThrow('a chain has one uptime feed')
})

it('refuses sources of prices that nothing verifies, that two tokens share, and shares of a token without a multiplier', () => {
  const stream = `0x000b${'0'.repeat(59)}1`
  const reports = { kind: 'reports', feedIds: [stream], maxSpreadBps: 50, isSharePrice: true }
  const config = exampleConfig('robinhood', { source: reports })
  expect(() => checkChain(config)).not.toThrow()
  expect(() => checkChain({ ...config, reportVerifier: undefined })).toThrow('reportVerifier is missing')
  expect(() => checkChain({ ...config, tokens: [...config.tokens, ...config.tokens] })).toThrow(
    `the stream ${stream} is named twice`,
  )
  const plain = exampleConfig('robinhood', { source: reports, description: { kind: 'plain' } })
  expect(() => checkChain(plain)).toThrow('NVDA: isSharePrice needs a token with a multiplier')
  const crypto = { ...reports, feedIds: [`0x0003${'0'.repeat(59)}1`] }
  expect(() => exampleConfig('robinhood', { source: crypto })).toThrow('must be a stream of schema 8, 10 or 11')
})

/** Returns the example for a chain as it is read from a file, with other values of its token. */
function exampleConfig(environment: string, token: object = {}) {
  const path = join(folder, `${environment}-example.json`)
  const example = Object(exampleFor(environment))
  writeFileSync(path, JSON.stringify({ ...example, tokens: [{ ...example.tokens[0], ...token }] }))
  return readConfig(path)
}
