import { decodeFunctionResult, encodeFunctionResult, type Hex } from 'viem'
import { describe, expect, it, vi } from 'vitest'
import { multicall3Abi } from '../../contracts-abi/multicall3.ts'
import { guides } from '../../src/http/llms-txt.ts'
import { operations } from '../../src/operations/index.ts'
import { chain, GENESIS } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, deployment, request } from '../support/surfaces.ts'

// HTTP only: discovery, readiness, content negotiation, caching headers and documents have no tools.

const noChain = () => appWith({ CHAIN_ID: undefined, RPC_URL: undefined, CONTRACTS: undefined })
const text = async (path: string, init?: RequestInit) => (await request(path, init)).text()

describe('the root', () => {
  it('the root describes the deployment and lists every operation', async () => {
    const { body } = await call('getDiscovery')
    expect(body).toMatchObject({
      service: 'agent-trading-service',
      version: '0.1.0',
      chainId: deployment.chainId,
      links: { openapi: `${deployment.baseUrl}/docs/swagger.json`, mcp: `${deployment.baseUrl}/mcp` },
      contracts: {
        AgentRegistry: deployment.contracts.AgentRegistry,
        TradeRouter: deployment.contracts.TradeRouter,
        OwnerControls: deployment.contracts.OwnerControls,
        OrderBook: deployment.contracts.OrderBook,
      },
      features: { trading: true, registration: true, docs: true },
      state: { tradingPaused: false, registryPaused: false },
      deployments: [{ chainId: deployment.chainId, baseUrl: deployment.baseUrl }],
    })
    expect(body.endpoints.map(({ path }: { path: string }) => path)).toEqual(operations.map(({ path }) => path))
  })

  it('the root responds without a chain, and if the chain cannot be reached', async () => {
    const without = await call('getDiscovery', {}, noChain())
    expect(without.body).toMatchObject({ chainId: null, features: { trading: false }, state: { registryPaused: null } })
    const dead = await call('getDiscovery', {}, appWith({ RPC_URL: 'http://127.0.0.1:1' }))
    expect(dead.body).toMatchObject({ state: { tradingPaused: null, registryPaused: null } })
  })

  it('the root reports what is paused', async () => {
    await chain.pauseRegistry(true)
    expect((await call('getDiscovery')).body.state.registryPaused).toBe(true)
    await chain.pauseRegistry(false)
  })
})

describe('readiness', () => {
  it('readiness checks node, contracts, accounts, prices and pauses', async () => {
    const { status, body } = await call('getReadiness')
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        status: 'ready',
        contracts: { missing: [] },
        executor: {
          configured: true,
          lanes: [
            {
              address: deployment.accounts.executor.address,
              paused: false,
              hasRole: true,
              nextNonce: expect.any(Number),
              depth: expect.any(Number),
            },
          ],
        },
        updater: { configured: true, lanes: [{ address: deployment.accounts.oracleUpdater.address, paused: false }] },
        paused: { registry: false, vaults: [] },
      },
    })
  })

  it.each([
    ['no chain', { CHAIN_ID: undefined }, 'no chain is configured'],
    ['an unreachable node', { RPC_URL: 'http://127.0.0.1:1' }, 'the node cannot be reached'],
    ['no executor', { EXECUTOR_PRIVATE_KEY: undefined }, 'no executor account is configured'],
    [
      'a contract without code',
      { CONTRACTS: JSON.stringify({ ...deployment.contracts, QuoterV2: `0x${'ab'.repeat(20)}` }) },
      'contracts have no code: QuoterV2',
    ],
  ])('readiness responds 503 with %s', async (_, changes, problem) => {
    const { status, body } = await call('getReadiness', {}, appWith(changes))
    expect({ status, body }).toMatchObject({ status: 503, body: { code: 'NOT_READY', details: { problem } } })
  })

  it.each([
    ['none', {}, { kind: 'none', reachable: true }],
    ['self-hosted', { X402_ENABLED: 'true' }, { kind: 'own', reachable: true }],
    [
      'an unreachable hosted one',
      { X402_ENABLED: 'true', X402_FACILITATOR_URL: 'http://127.0.0.1:1' },
      { kind: 'hosted', reachable: false },
    ],
    ['a misconfigured one', { X402_ENABLED: 'true', X402_NETWORK: 'base' }, { kind: 'unusable', reachable: true }],
  ])('readiness reports the facilitator: %s', async (_, changes, facilitator) => {
    const { status, body } = await call('getReadiness', {}, appWith(changes))
    expect({ status, body }).toMatchObject({ status: 200, body: { facilitator } })
    expect(body.problems.includes('the facilitator does not respond')).toBe(!facilitator.reachable)
  })

  it('readiness responds 503 while the registry or every vault is paused, and warns if one vault is', async () => {
    await chain.pauseTrading('genesis', true)
    const { body } = await call('getReadiness')
    expect(body).toMatchObject({ status: 'ready', paused: { vaults: ['genesis'] } })
    expect(body.problems).toContain('trading is paused in a vault')
    await chain.pauseTrading('frontier', true)
    expect(await call('getReadiness')).toMatchObject({ status: 503, body: { code: 'NOT_READY' } })
    await chain.pauseTrading('genesis', false)
    await chain.pauseTrading('frontier', false)
    await chain.pauseRegistry(true)
    expect((await call('getReadiness')).body.details.paused.registry).toBe(true)
    await chain.pauseRegistry(false)
  })
})

describe('Markdown', () => {
  it.each([
    ['format=md', '/vaults?format=md', {}],
    ['an Accept header', '/vaults', { headers: { accept: 'text/markdown, application/json;q=0.5' } }],
  ])('Markdown of the vaults is returned for %s', async (_, path, init) => {
    const response = await request(path, init)
    expect(response.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
    const markdown = await response.text()
    expect(markdown).toContain('# Vaults')
    expect(markdown).toContain('## Genesis')
    expect(markdown).toContain(GENESIS)
    expect(markdown).toContain('CHALLENGE')
  })

  it('Markdown is not returned to a browser or a client without a preference', async () => {
    for (const accept of ['*/*', 'text/html,application/xhtml+xml,*/*;q=0.8', 'application/json, text/markdown;q=0.9'])
      expect((await request('/vaults', { headers: { accept } })).headers.get('content-type')).toContain('json')
  })

  it.each(['json', 'MD', 'html'])('Markdown is the only other format, so format=%s is rejected', async format => {
    const response = await request(`/vaults?format=${format}`)
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'INVALID_REQUEST' }])
  })
})

describe('a response', () => {
  it('a response has its block as ETag and is a 304 while that block is the newest', async () => {
    const first = await request('/vaults')
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toBe('no-cache')
    const { asOf } = (await first.json()) as { asOf: { blockNumber: string; blockTimestamp: string } }
    expect(etag).toMatch(new RegExp(`^W/"0\\.1\\.0-${asOf.blockNumber}-${asOf.blockTimestamp}-[0-9a-f]{16}"$`))
    for (const given of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const again = await request('/vaults', { headers: { 'if-none-match': given } })
      const isSame = again.headers.get('etag') === etag || given === '*'
      expect(again.status).toBe(isSame ? 304 : 200)
      if (isSame) expect(await again.text()).toBe('')
    }
    await chain.setPrice('META', '600')
    expect((await request('/vaults', { headers: { 'if-none-match': etag } })).status).toBe(200)
  })

  it('a response has another ETag in each format, so that no cache takes JSON for Markdown', async () => {
    const inFormat = (accept: string, tag?: string) =>
      request('/vaults', { headers: { accept, ...(tag && { 'if-none-match': tag }) } })
    const tagOf = async (accept: string) => (await inFormat(accept)).headers.get('etag') ?? ''
    // Both responses have to be of the same block.
    const [json, markdown] = await vi.waitUntil(
      async () => {
        const tags = [await tagOf('application/json'), await tagOf('text/markdown')]
        const blocks = tags.map(tag => tag.split('-')[1])
        return blocks[0] === blocks[1] && tags
      },
      { timeout: 30_000, interval: 10 },
    )
    expect(markdown).not.toBe(json)
    const crossed = await inFormat('text/markdown', json)
    expect([crossed.status, crossed.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
  })

  it('a response has another ETag after a reorg to a block of the same number and second', async () => {
    const original = globalThis.fetch.bind(globalThis)
    const OWN_URL = `${deployment.rpcUrl}/reorg`
    const app = appWith({ RPC_URL: OWN_URL })
    const aggregate3 = { abi: multicall3Abi, functionName: 'aggregate3' } as const
    let block: readonly { success: boolean; returnData: Hex }[] | undefined
    // The node reports the number and the timestamp of the first read with the state of later blocks.
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const sent = new Request(input as RequestInfo, init as RequestInit)
      if (sent.url !== OWN_URL) return original(sent)
      const reply = (await (await original(new Request(deployment.rpcUrl, sent))).json()) as { result: Hex }
      const results = decodeFunctionResult({ ...aggregate3, data: reply.result })
      block ??= results.slice(0, 2)
      const result = encodeFunctionResult({ ...aggregate3, result: [...block, ...results.slice(2)] })
      return Response.json({ ...reply, result })
    })
    const first = await request('/prices', {}, app)
    const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
    expect((await request('/prices', { headers }, app)).status).toBe(304)
    await chain.setPrice('META', '601')
    const second = await request('/prices', { headers }, app)
    vi.restoreAllMocks()
    expect(second.status).toBe(200)
    const [before, after] = [await first.json<Body>(), await second.json<Body>()]
    expect(after.asOf).toEqual(before.asOf)
    expect(after.prices.META).not.toEqual(before.prices.META)
  })

  it.each([
    ['a quote', '/agents/register/quote'],
    ['an error', '/agents/999999'],
    ['an unknown path', '/nowhere'],
  ])('a response to %s is never cached', async (_, path) => {
    const { headers } = await request(path)
    expect([headers.get('cache-control'), headers.get('etag')]).toEqual(['no-store', null])
  })

  it('a response is readable from any origin, with the relevant headers', async () => {
    const { headers } = await request('/vaults', { headers: { origin: 'https://agents.example' } })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    for (const name of ['ETag', 'X-Request-Id', 'PAYMENT-REQUIRED', 'X-PAYMENT-RESPONSE'])
      expect(headers.get('access-control-expose-headers')).toContain(name)
    const preflight = await request('/agents/register', {
      method: 'OPTIONS',
      headers: {
        origin: 'https://agents.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,payment-signature',
      },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('payment-signature')
  })

  it('a response has the security headers', async () => {
    const { headers } = await request('/health')
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('strict-transport-security')).toContain('max-age=')
  })
})

describe('a link to a page', () => {
  it.each([
    ['/app/agents/999999', 'Agent 999999 · Agent Trading Service', 'Agent 999999'],
    ['/app/vaults/unlisted', 'Vault unlisted · Agent Trading Service', 'Vault unlisted'],
    ['/app/vaults', 'Vaults · Agent Trading Service', 'Vaults'],
    ['/app/depositor', "Depositor's desk · Agent Trading Service", "Depositor's desk"],
    ['/app/leaderboard', 'Leaderboard · Agent Trading Service', 'Leaderboard'],
    ['/app/agents/%22%3E%3Cscript%3E', 'Agent Trading Service', 'Agent Trading Service'],
  ])('a link to a page shows its title where it is shared: %s', async (path, title, card) => {
    const response = await request(path, { headers: { accept: 'text/html' } })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, expect.stringMatching('text/html')])
    const html = await response.text()
    expect(html).toContain(`<title>${title}</title>`)
    expect(html).toContain(`<meta property="og:title" content="${card}">`)
    expect(html.match(/<meta property="og:url" content="([^"]*)">/)?.[1]).toMatch(/^http/)
  })
})

describe('the API documents', () => {
  it('the API documents for language models name every operation', async () => {
    const index = await text('/llms.txt')
    const full = await text('/llms-full.txt')
    for (const { method, path } of operations) {
      expect(index).toContain(`${method.toUpperCase()} ${path}`)
      expect(full).toContain(`## ${method.toUpperCase()} ${path}`)
    }
    expect(full).toContain('OpenPosition(uint256 agentId,address vault')
    expect(full).toContain('EXCEEDS_ALLOCATION_CAP')
  })

  it('the index for language models links to a Markdown page for every operation and guide', async () => {
    const index = await text('/llms.txt')
    const links = [...index.matchAll(/\]\([^)]*(\/docs\/(?:operations|guides)\/[^)]+\.md)\)/g)].map(
      ([, link = '']) => link,
    )
    expect(links.length).toBe(operations.length + guides.length)
    for (const link of links) {
      const page = await request(link)
      expect([link, page.status, page.headers.get('content-type')]).toEqual([
        link,
        200,
        expect.stringMatching(/^text\/markdown/),
      ])
    }
    const full = await text('/llms-full.txt')
    for (const { slug } of guides) {
      const [, title = slug] = /^# (.+)$/m.exec(await text(`/docs/guides/${slug}.md`)) ?? []
      expect(full).toContain(`\n## ${title}\n`)
    }
  })

  it.each(['/docs.md', '/docs/index.md'])(
    'the index for language models is the Markdown of the documents: %s',
    async path => {
      const { status, headers } = await request(path)
      expect([status, headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
      expect(await text(path)).toBe(await text('/llms.txt'))
    },
  )

  it('how to trade fits 1,000 tokens for a model with little room', async () => {
    // Language models need about a token for 3.8 characters of such a text.
    const small = await text('/llms-small.txt')
    expect(small.length / 3.8).toBeLessThan(1_000)
    for (const [, path = ''] of small.matchAll(/`(?:GET|POST) (\/[^\s?`]*)/g))
      expect(operations.map(operation => operation.path)).toContain(path)
  })

  it.each(['/docs', '/docs/errors', '/docs/guides/signing', '/docs/operations/getVault'])(
    'a page of the documents is Markdown for a client that prefers it, and HTML for a browser: %s',
    async path => {
      const types = await Promise.all(
        ['text/markdown, text/html;q=0.9', 'text/html,*/*;q=0.8', '*/*'].map(async accept => {
          const { status, headers } = await request(path, { headers: { accept } })
          return [status, headers.get('content-type')?.split(';')[0], headers.get('vary')?.includes('Accept')]
        }),
      )
      expect(types).toEqual([
        [200, 'text/markdown', true],
        [200, 'text/html', true],
        [200, 'text/html', true],
      ])
      expect((await request(`${path}.md`)).headers.get('content-type')).toContain('text/markdown')
    },
  )

  it('the API documents include the interactive page, which loads only from this server', async () => {
    for (const path of ['/docs', '/docs/']) {
      const page = await request(path)
      expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
      expect((await page.text()).match(/(src|href)="(?!\/|#)[^"]*"/g)).toBeNull()
    }
  })

  it('the API documents can be switched off, except for the OpenAPI description', async () => {
    const app = appWith({ DOCS_ENABLED: 'false' })
    for (const path of ['/docs', '/docs/', '/docs/reference.js', '/docs/operations/getVault']) {
      const response = await request(path, {}, app)
      expect([response.status, await response.json()]).toMatchObject([404, { code: 'UNKNOWN_PATH' }])
    }
    expect((await request('/docs/swagger.json', {}, app)).status).toBe(200)
    expect((await call('getDiscovery', {}, app)).body.links.docs).toBeNull()
  })

  it('the API documents respond 404 to an unknown file', async () => {
    const response = await request('/docs/nothing.js')
    expect([response.status, await response.json()]).toMatchObject([404, { code: 'UNKNOWN_PATH' }])
  })
})
