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
  expect(await codes(await request('/agents/0'))).toEqual([400, 'INVALID_REQUEST'])
})
