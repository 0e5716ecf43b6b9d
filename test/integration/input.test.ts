import { expect, it } from 'vitest'
import { request } from '../support/surfaces.ts'

// HTTP only: paths, methods and raw bodies. `test/fuzz` sends random ones.

it('unknown paths, wrong methods, malformed JSON and large bodies have their own codes', async () => {
  const json = { 'content-type': 'application/json' }
  const post = (path: string, body: string, headers: Record<string, string> = json) =>
    request(path, { method: 'POST', headers, body })
  const codes = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]
  expect(await codes(await request('/nowhere'))).toEqual([404, 'UNKNOWN_PATH'])
  const wrongMethod = await request('/vaults', { method: 'DELETE' })
  expect(wrongMethod.headers.get('allow')).toContain('GET')
  expect(await codes(wrongMethod)).toEqual([405, 'METHOD_NOT_ALLOWED'])
  expect(await codes(await post('/agents/register', '{'))).toEqual([400, 'MALFORMED_JSON'])
  expect(await codes(await post('/agents/register', ''))).toEqual([400, 'MALFORMED_JSON'])
  expect(await codes(await post('/agents/register', '{}', { 'content-type': 'text/plain' }))).toEqual([
    400,
    'UNSUPPORTED_CONTENT_TYPE',
  ])
  expect(await codes(await post('/agents/register', `"${'x'.repeat(110_000)}"`))).toEqual([413, 'BODY_TOO_LARGE'])
  const put = { method: 'PUT', headers: json, body: `"${'x'.repeat(110_000)}"` }
  expect(await codes(await request('/operator/intake', put))).toEqual([413, 'BODY_TOO_LARGE'])
  expect(await codes(await request('/agents/0'))).toEqual([400, 'INVALID_REQUEST'])
})

it.each(['{"toString":1}', '{"valueOf":null,"toString":null}', '{"__proto__":1}', '[{"toString":1}]'])(
  'the value %s, which may have no text, is refused wherever a number or one of some names is expected',
  async value => {
    for (const [path, field] of [
      ['/agents/1/reduce-intents', 'exitBps'],
      ['/agents/1/stop', 'action'],
    ]) {
      const headers = { 'content-type': 'application/json' }
      const response = await request(path ?? '', { method: 'POST', headers, body: `{"${field}":${value}}` })
      expect({ status: response.status, body: await response.json() }).toMatchObject({
        status: 400,
        body: {
          code: 'INVALID_REQUEST',
          details: { problems: expect.arrayContaining([expect.objectContaining({ path: field, given: value })]) },
        },
      })
    }
  },
)
