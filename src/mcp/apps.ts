import { env } from 'cloudflare:workers'
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ReadResourceResult,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'

// The MCP extension for apps (SEP-1865): hosts that have it show the result of some tools as a card. All others have
// the text of the result, which is the same without it.

const EXTENSION = 'io.modelcontextprotocol/ui'
export const appsCapability = { [EXTENSION]: {} }

const mimeType = 'text/html;profile=mcp-app'
/** The cards and their tools. One document, which is built from the parts of the pages, tells them apart. */
const cards: { uri: string; name: string; title: string; tools: string[] }[] = [
  {
    uri: 'ui://ticket',
    name: 'ticket',
    title: 'Trade ticket',
    tools: ['svc_get_trade_intent_quote', 'svc_submit_trade_intent'],
  },
  { uri: 'ui://agent', name: 'agent', title: 'Agent', tools: ['svc_get_agent', 'svc_get_risk_state'] },
]
/** The service's own address serves no such path: only the binding does. */
const DOCUMENT = 'https://assets/app/card'

export const listedCards = cards.map(({ tools: _, ...card }) => ({ ...card, mimeType }))

/** Returns whether a host shows cards: it says so with each request (2026 revision), or once for its session. */
export function showsCards(server: Server, { mcpReq }: ServerContext): boolean {
  const { [CLIENT_CAPABILITIES_META_KEY]: given } = { ...mcpReq.envelope } as Record<string, unknown>
  const capabilities = given ?? server.getClientCapabilities()
  return Object.hasOwn({ ...(capabilities as { extensions?: object } | undefined)?.extensions }, EXTENSION)
}

/** Returns the link from a tool to its card, for the tool's entry in the list. */
export function cardOf(tool: string): { _meta?: { ui: { resourceUri: string } } } {
  const card = cards.find(({ tools }) => tools.includes(tool))
  return card === undefined ? {} : { _meta: { ui: { resourceUri: card.uri } } }
}

/** Reads a card; undefined for another URI, or if the pages are not built. */
export async function readCard(uri: string): Promise<ReadResourceResult | undefined> {
  if (!cards.some(card => card.uri === uri)) return undefined
  const response = await env.ASSETS.fetch(new Request(DOCUMENT))
  if (!response.ok) return undefined
  const text = await response.text()
  return { contents: [{ uri, mimeType, text, _meta: { ui: { prefersBorder: true } } }] }
}
