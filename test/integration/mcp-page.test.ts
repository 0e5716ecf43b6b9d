import { expect, it } from 'vitest'
import { deployment, request } from '../support/surfaces.ts'

// MCP only: what a browser sees that opens the MCP endpoint.

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const open = (accept: string, path = '/mcp') => request(path, { headers: { accept } })

it('a browser that opens the MCP endpoint gets a page that says how to connect', async () => {
  const response = await open(BROWSER)
  const page = await response.text()
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const url = `${deployment.baseUrl}/mcp`
  expect(page).toContain(`<code>claude mcp add --transport http agent-trading ${url}</code>`)
  for (const client of ['Claude Code', 'Claude Desktop', 'Cursor', 'VS Code'])
    expect(page).toContain(`<h2>${client}</h2>`)
  const configurations = [...page.matchAll(/<code>(\{.*?\})<\/code>/gs)].map(([, text = '']) =>
    JSON.parse(text.replaceAll('&#34;', '"')),
  )
  expect(configurations).toEqual([
    { mcpServers: { 'agent-trading': { command: 'npx', args: ['-y', 'mcp-remote', url] } } },
    { mcpServers: { 'agent-trading': { url } } },
    { servers: { 'agent-trading': { type: 'http', url } } },
  ])
})

it('the page has one style, which its policy allows by hash, and no scripts', async () => {
  const response = await open(BROWSER)
  const page = await response.text()
  const [style = ''] = [...page.matchAll(/<style>(.*?)<\/style>/gs)].map(([, text]) => text)
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style))
  const policy = response.headers.get('content-security-policy')
  expect(policy).toContain(`style-src 'sha256-${btoa(String.fromCharCode(...new Uint8Array(hash)))}'`)
  expect(policy).toMatch(/^default-src 'none';/)
  expect(policy).not.toContain('unsafe')
  expect(page).not.toMatch(/<script|style=|\son\w+=/)
})

it('clients still get what the protocol says', async () => {
  for (const accept of ['application/json', 'text/event-stream', '*/*', 'text/event-stream, text/html']) {
    const response = await open(accept)
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(response.status).toBe(400)
  }
  const foreign = await request('http://evil.example/mcp', { headers: { accept: BROWSER } })
  expect(foreign.status).toBe(403)
})
