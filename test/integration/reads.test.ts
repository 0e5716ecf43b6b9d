import { describe, expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { quoterV2Abi } from '../../contracts-abi/quoter-v2.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { chain, FRONTIER, GENESIS } from '../support/actors.ts'
import { node } from '../support/history-oracle.ts'
import { appWith, call, deployment, request } from '../support/surfaces.ts'

describe('health', () => {
  it('health responds without any configuration', async () => {
    const app = appWith({ CHAIN_ID: undefined, RPC_URL: undefined, CONTRACTS: undefined })
    expect((await call('getHealth', {}, app)).body).toEqual({
      status: 'ok',
      service: 'agent-trading-service',
      closedIntake: [],
    })
  })
})

describe('vaults', () => {
  it('vaults are listed with their texts and tracks', async () => {
    const { body } = await call('listVaults')
    expect(body).toMatchObject({ chainId: deployment.chainId, total: 2 })
    const [genesis] = body.vaults
    expect(genesis).toMatchObject({ id: 'genesis', slug: 'genesis', name: 'Genesis', contractAddress: GENESIS })
    expect(genesis.vaultTrackConfigs).toHaveLength(3)
    expect(genesis.vaultTrackConfigs[0]).toMatchObject({
      vault: GENESIS,
      trackId: 0,
      trackName: 'CHALLENGE',
      initialAllocation: '10000000000',
      active: true,
    })
  })

  it.each([
    ['its slug', 'genesis'],
    ['its address', GENESIS],
    ['its address in lower case', GENESIS.toLowerCase()],
  ])('vaults are found by %s', async (_, id) => {
    expect((await call('getVault', { id })).body.vault.contractAddress).toBe(GENESIS)
  })

  it.each(['listVaultTokens', 'getVault'] as const)('vaults return 404 from %s if unknown', async id => {
    for (const vault of ['nowhere', deployment.contracts.TradeRouter])
      expect(await call(id, { id: vault })).toMatchObject({ status: 404, body: { code: 'VAULT_NOT_FOUND' } })
  })
})

describe('tokens', () => {
  it('tokens of a vault are its allowed tokens, with fresh prices', async () => {
    const { body } = await call('listVaultTokens', { id: FRONTIER })
    expect(body).toMatchObject({ vaultId: 'frontier', priceOracle: deployment.contracts.PriceOracle })
    const bySymbol = Object.fromEntries(body.tokens.map((token: { symbol: string }) => [token.symbol, token]))
    expect(Object.keys(bySymbol).sort()).toEqual(['COIN', 'HOOD', 'META', 'NVDA', 'PLTR', 'TSLA'])
    expect(bySymbol.COIN).toMatchObject({ decimals: 6, allowedInVault: true, vaultIds: ['frontier'] })
    expect(bySymbol.NVDA.vaultIds).toEqual(['genesis', 'frontier'])
    expect(bySymbol.NVDA.price).toMatchObject({ stale: false, priceUsd: expect.stringMatching(/^\d+(\.\d+)?$/) })
  })

  it('a size costs what the venue quotes for a purchase and a sale of it, against the oracle', async () => {
    const usdcAmount = 5_000_000_000n
    const { body } = await call('getDepth', { symbol: 'NVDA', usdcAmount: '5000' })
    const token = deployment.tokens.NVDA as `0x${string}`
    const { USDC, QuoterV2, SwapAdapter, PriceOracle } = deployment.contracts
    const price = await node.readContract({
      address: PriceOracle,
      abi: priceOracleAbi,
      functionName: 'peekPrice',
      args: [token],
    })
    const fee = await node.readContract({
      address: SwapAdapter as `0x${string}`,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'poolFeeOf',
      args: [token],
    })
    const swap = async (tokenIn: `0x${string}`, tokenOut: `0x${string}`, amountIn: bigint) => {
      const params = { tokenIn, tokenOut, amountIn, fee, sqrtPriceLimitX96: 0n }
      const { result } = await node.simulateContract({
        address: QuoterV2 as `0x${string}`,
        abi: quoterV2Abi,
        functionName: 'quoteExactInputSingle',
        args: [params],
      })
      return result[0]
    }
    const tokenIn = (usdcAmount * 10n ** 20n) / price[0]
    const bought = await swap(USDC as `0x${string}`, token, usdcAmount)
    const received = await swap(token, USDC as `0x${string}`, tokenIn)
    const bps = (part: bigint, whole: bigint) => Math.ceil((Number(part) / Number(whole)) * 10_000 - 1e-6)
    const value = (bought * price[0]) / 10n ** 20n
    expect(body).toMatchObject({
      symbol: 'NVDA',
      usdcAmount: '5000000000',
      poolFeeBps: fee / 100,
      purchase: {
        tokenAmount: `${bought}`,
        usdcAmount: '5000000000',
        costBps: bps(usdcAmount - value, usdcAmount),
      },
      sale: { tokenAmount: `${tokenIn}`, usdcAmount: `${received}`, costBps: bps(usdcAmount - received, usdcAmount) },
    })
    const larger = (await call('getDepth', { symbol: 'NVDA', usdcAmount: '50000' })).body
    expect(larger.purchase.costBps).toBeGreaterThan(body.purchase.costBps)
    expect(larger.sale.costBps).toBeGreaterThan(body.sale.costBps)
  })

  it.each([
    ['zero', { symbol: 'NVDA', usdcAmount: '0' }, 'INVALID_AMOUNT'],
    ['less than a unit of USDC', { symbol: 'NVDA', usdcAmount: '0.0000001' }, 'INVALID_AMOUNT'],
    ['an amount that the pool does not hold', { symbol: 'NVDA', usdcAmount: '900000000000' }, 'LIQUIDITY_EXCEEDED'],
    ['an amount of 77 digits', { symbol: 'NVDA', usdcAmount: `1${'0'.repeat(70)}` }, 'LIQUIDITY_EXCEEDED'],
    ['no amount', { symbol: 'NVDA' }, 'INVALID_REQUEST'],
    ['an unknown symbol', { symbol: 'NOPE', usdcAmount: '1' }, 'UNKNOWN_SYMBOL'],
  ])('a size of %s is refused', async (_, input, code) => {
    expect(await call('getDepth', input)).toMatchObject({ status: 400, body: { code } })
  })

  it('tokens are found by their symbol in any case, and named as the registry does', async () => {
    expect((await call('getDepth', { symbol: 'nvda', usdcAmount: '1000' })).body).toMatchObject({ symbol: 'NVDA' })
    expect((await call('getCandles', { symbol: 'Nvda', interval: '1h' })).body).toMatchObject({ symbol: 'NVDA' })
    const { prices, missing } = (await call('getPrices', { symbols: 'nvda,aapl,NOPE' })).body
    expect(Object.keys(prices).sort()).toEqual(['AAPL', 'NVDA'])
    expect(missing).toEqual(['NOPE'])
    expect((await call('listTrades', { symbol: 'nvda' })).status).toBe(200)
  })

  it('tokens of the registry are listed', async () => {
    const { body } = await call('listTokens')
    expect(body.total).toBe(body.tokens.length)
    expect(body.tokens.map(({ symbol }: { symbol: string }) => symbol)).toEqual(
      expect.arrayContaining(Object.keys(deployment.tokens)),
    )
    expect(body.tokens[0]).not.toHaveProperty('allowedInVault')
  })

  it('tokens that are not configured are found on the chain', async () => {
    const { NVDA: _, ...others } = deployment.tokens
    const app = appWith({ TOKENS: JSON.stringify(others), VAULTS: '{}' })
    const { body } = await call('listTokens', {}, app)
    expect(body.tokens.map(({ symbol }: { symbol: string }) => symbol)).toContain('NVDA')
    expect((await call('listVaults', {}, app)).body.total).toBe(2)
  })
})

describe('prices', () => {
  it('prices are returned by symbol, and unknown symbols are named', async () => {
    const { body } = await call('getPrices', { symbols: 'AAPL,NOPE' })
    expect(Object.keys(body.prices)).toEqual(['AAPL'])
    expect(body).toMatchObject({ total: 1, missing: ['NOPE'] })
    expect(body.prices.AAPL).toMatchObject({ symbol: 'AAPL', address: deployment.tokens.AAPL, quoted: true })
  })

  it('prices change with the oracle', async () => {
    await chain.setPrice('MSFT', '520.5')
    expect((await call('getPrices', { symbols: 'MSFT' })).body.prices.MSFT.priceUsd).toBe('520.5')
    await chain.setPrice('MSFT', '512.6')
  })
})

describe('a response', () => {
  it('a response names the block it describes', async () => {
    const { body } = await call('listTokens')
    expect(body.asOf).toEqual({
      blockNumber: expect.stringMatching(/^[1-9]\d*$/),
      blockTimestamp: expect.stringMatching(/^[1-9]\d{9}$/),
    })
  })

  it('a response repeats the request id of the caller, or creates one', async () => {
    const given = await request('/agents/0', { headers: { 'x-request-id': 'my-id-1' } })
    expect(given.headers.get('x-request-id')).toBe('my-id-1')
    expect(await given.json()).toMatchObject({ requestId: 'my-id-1' })
    expect((await request('/health')).headers.get('x-request-id')).toMatch(/^[\w-]{16,}$/)
  })
})
