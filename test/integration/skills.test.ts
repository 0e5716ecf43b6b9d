import { exports } from 'cloudflare:workers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import { describe, expect, it } from 'vitest'
import { errorCodes } from '../../src/errors/catalogue.ts'
import type { Body } from '../support/body.ts'
import { request } from '../support/surfaces.ts'

// HTTP only: the skills are files, which both surfaces serve unchanged; the MCP client of the SDK verifies them.

const sources = import.meta.glob('../../skills/*/SKILL.md', {
  query: '?raw',
  import: 'default',
  eager: true,
}) as Record<string, string>
const fileOf = (name: string) => sources[`../../skills/${name}/SKILL.md`]
const names = ['onboard', 'recover', 'risk', 'trade']

const fetchWorker = (async (input, init) => exports.default.fetch(new Request(input as string, init))) as typeof fetch
async function connect(mode: 'legacy' | { pin: string }, path = '/mcp') {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  await client.connect(new StreamableHTTPClientTransport(new URL(path, 'http://localhost'), { fetch: fetchWorker }))
  return client
}

it.each([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', { pin: '2026-07-28' }],
] as const)('the client of the SDK lists, gets and verifies every skill over %s', async (_, mode) => {
  const client = await connect(mode)
  const reader = new SkillsClient(client)
  expect(reader.supported).toBe(true)
  const { skills } = await reader.list()
  expect(skills.map(({ frontmatter }) => frontmatter.name)).toEqual(names)
  for (const skill of skills) {
    const file = await reader.read(skill)
    expect(file).toMatchObject({ verified: true, text: fileOf(skill.frontmatter.name), mimeType: 'text/markdown' })
    expect((await reader.get(skill.uri)).skill).toEqual(skill)
  }
  await expect(reader.get('skill://none/SKILL.md')).rejects.toThrow('There is no skill')
  await client.close()
})

it('the well-known index names the files with their digests', async () => {
  const response = await request('/.well-known/agent-skills/index.json')
  const index = (await response.json()) as Body
  expect(index.$schema).toBe('https://schemas.agentskills.io/discovery/0.2.0/schema.json')
  expect(index.skills.map(({ name }: Body) => name)).toEqual(names)
  for (const { name, type, url, digest } of index.skills) {
    const file = await request(new URL(url, 'http://localhost/.well-known/agent-skills/index.json').pathname)
    expect(file.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
    const text = await file.text()
    const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
    const hex = [...new Uint8Array(hash)].map(byte => byte.toString(16).padStart(2, '0')).join('')
    expect({ type, text, digest }).toEqual({ type: 'skill-md', text: fileOf(name), digest: `sha256:${hex}` })
  }
  expect((await request('/.well-known/agent-skills/none/SKILL.md')).status).toBe(404)
})

describe.each(names)('the skill %s', name => {
  const text = fileOf(name) ?? ''

  it('names only tools and error codes that exist', async () => {
    const client = await connect({ pin: '2026-07-28' }, '/mcp?toolsets=all')
    const { tools } = await client.listTools()
    await client.close()
    const known = new Set([...tools.map(tool => tool.name), ...errorCodes.map(({ code }) => code as string)])
    const named = text.match(/\bsvc_\w+[a-z]\b|\b[A-Z]{3,}(?:_[A-Z0-9]+)+\b/g) ?? []
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter(each => !known.has(each))).toEqual([])
  })

  it('is short enough to be read before every task', () => {
    expect(text.length).toBeLessThan(5_000)
  })
})
