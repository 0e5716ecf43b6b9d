import { describe, expect, it } from 'vitest'
import { newTrader } from '../support/actors.ts'
import { request } from '../support/surfaces.ts'

// HTTP only: the same request as different clients write it.

type Refusal = { code: string; error: string; details?: { problems?: { path: string; given?: string }[] } }
const post = (path: string, body: BodyInit, headers: Record<string, string>) =>
  request(path, { method: 'POST', headers, body })
const codeOf = async (response: Response) => [response.status, (await response.json<Refusal>()).code]

describe('a JSON body', () => {
  it.each([
    'application/json',
    'application/json;',
    'application/json ;',
    'application/json ; charset=UTF-8',
    'application/json;charset="utf-8"',
    'APPLICATION/JSON; charset=utf-8;',
  ])('a JSON body is read under the content type %j', async contentType => {
    const response = await post('/agents/1/trade-intents', '{"symbol":"NVDA"}', { 'content-type': contentType })
    const { code, details } = await response.json<Refusal>()
    expect([response.status, code]).toEqual([400, 'INVALID_REQUEST'])
    expect(details?.problems?.map(({ path }) => path)).not.toContain('symbol')
  })

  it.each(['text/plain', 'application/jsonp', 'text/json; application/json'])(
    'a JSON body is refused under the content type %j',
    async contentType => {
      const response = await post('/agents/1/trade-intents', '{"symbol":"NVDA"}', { 'content-type': contentType })
      expect(await codeOf(response)).toEqual([400, 'UNSUPPORTED_CONTENT_TYPE'])
    },
  )

  it.each(['gzip', 'br', 'deflate, gzip'])(
    'a JSON body with the content encoding %s is a 415 that names it',
    async encoding => {
      const headers = { 'content-type': 'application/json', 'content-encoding': encoding }
      for (const path of ['/agents/1/trade-intents', '/mcp']) {
        const response = await post(path, new Uint8Array([31, 139, 8, 0]), {
          ...headers,
          accept: 'application/json, text/event-stream',
        })
        expect(response.status).toBe(415)
        expect(await response.text()).toContain(encoding)
      }
    },
  )

  it('a JSON body that says that it is not encoded is read', async () => {
    for (const encoding of ['identity', ''])
      expect(
        await codeOf(
          await post('/agents/1/trade-intents', '{}', {
            'content-type': 'application/json',
            'content-encoding': encoding,
          }),
        ),
      ).toEqual([400, 'INVALID_REQUEST'])
  })
})

describe('an error', () => {
  const emoji = '😀'.repeat(30)
  it.each([
    ['an amount', `/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=aaaaaaaaaa${emoji}`],
    [
      'an amount that is one character longer',
      `/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=aaaaaaaaaaa${emoji}`,
    ],
    ['a symbol', `/agents/1/trade-intents/quote?usdcAmount=1&symbol=${emoji}${emoji}`],
    ['a vault', `/vaults/x${emoji}${emoji}`],
    ['a path', `/x${emoji}${emoji}${emoji}${emoji}`],
    ['a field', `/vaults?a${emoji}=1`],
    ['a format', `/vaults?format=${emoji}`],
  ])('an error shortens what it repeats between characters: %s', async (_, path) => {
    const response = await request(path)
    const text = await response.text()
    const body = JSON.parse(text) as Refusal
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(text).not.toMatch(/\\ud[89a-f]/i)
    expect(text.isWellFormed()).toBe(true)
    expect(body.error.length).toBeLessThan(400)
    expect(text).not.toContain(emoji)
  })

  it('an error repeats no half of a character that was sent alone', async () => {
    const response = await post('/agents/1/trade-intents', '{"symbol":"\\ud83d","usdcAmount":"\\ude00"}', {
      'content-type': 'application/json',
    })
    expect(await response.text()).not.toMatch(/[^\\]\\ud[89a-f]/i)
  })
})

describe('the Accept header', () => {
  const trader = newTrader()
  it.each([
    ['*/*, text/csv;q=0.1', 'application/json'],
    ['text/csv', 'text/csv'],
    ['text/csv, application/json', 'text/csv'],
    ['application/json, text/csv', 'application/json'],
    ['application/json;q=0.2, text/csv;q=0.9', 'text/csv'],
    ['text/csv;q=0.2, application/json;q=0.9', 'application/json'],
    ['text/*, application/json;q=0.5', 'text/csv'],
    ['TEXT/CSV, */*;q=0.5', 'text/csv'],
    ['text/csv;q=0, */*', 'application/json'],
    ['application/json;q=0, */*', 'text/csv'],
    ['*/*', 'application/json'],
    ['', 'application/json'],
  ])('the Accept header %j gets %s', async (accept, type) => {
    const { agentId } = await trader
    const { status, headers } = await request(`/agents/${agentId}/trades`, { headers: { accept } })
    expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining(type)])
  })
})

describe('what is empty', () => {
  it('what is empty in headers and queries counts as absent', async () => {
    const empty = { 'last-event-id': '', accept: '', 'x-request-id': '', authorization: '', 'if-none-match': '' }
    const events = await request('/events', { headers: empty })
    expect([events.status, events.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    await events.body?.cancel()
    const list = await request('/vaults?format=&', { headers: empty })
    expect([list.status, list.headers.get('content-type')]).toEqual([200, 'application/json'])
    expect((await request('/agents/1/trades?limit=&cursor=')).status).toBe((await request('/agents/1/trades')).status)
  })

  it('one slash after a path counts as absent', async () => {
    for (const path of [
      '/vaults/',
      '/vaults/genesis/',
      '/llms.txt/',
      '/health/',
      '/agents/register/quote/?vault=genesis',
    ])
      expect([path, (await request(path)).status]).toEqual([path, 200])
    for (const path of ['/vaults//', '/vaults/genesis//'])
      expect([path, (await request(path)).status]).toEqual([path, 404])
    expect((await request('/')).status).toBe(200)
  })
})
