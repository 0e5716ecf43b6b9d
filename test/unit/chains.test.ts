import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ChainFacts } from '@agent-trading-service/protocol/chain-facts'
import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { publicChains } from '@agent-trading-service/protocol/public-chains'
import { domainSeparator, isAddress } from 'viem'
import { afterAll, expect, it } from 'vitest'
import { CHAINS_FOLDER, chainsModule, chainsPage } from '../../scripts/chains.ts'
import { checkChain, exampleFor, readConfig } from '../../scripts/deploy-config.ts'
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

it.each(['4663', '42161', '84532', '11155111', '99999'])(
  'chain %s counts as one with real money: no development conveniences, no local prices',
  id => {
    const { chain, problems } = configOf({ CHAIN_ID: id, DEVELOPMENT_CHAIN: 'true', PRICE_PROVIDER: 'local' })
    expect(chain?.isDevelopment).toBe(false)
    expect(problems).toEqual([
      expect.stringContaining('DEVELOPMENT_CHAIN: must not be true'),
      expect.stringContaining('PRICE_PROVIDER: must not be local'),
    ])
  },
)

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
