import { env } from 'cloudflare:workers'
import {
  CLIENT_CAPABILITIES_META_KEY,
  type ReadResourceResult,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { CARDS, type Card } from '../operations/operation-definition.ts'

// The MCP extension for apps (SEP-1865): hosts that have it show the result of some tools as a card. All others have
// the text of the result, which is the same without it.

const EXTENSION = 'io.modelcontextprotocol/ui'
export const appsCapability = { [EXTENSION]: {} }

const mimeType = 'text/html;profile=mcp-app'
/** The service's own address serves no such path: only the binding does. */
const DOCUMENT = 'https://assets/app/card'

/** Returns whether a host shows cards: it says so with each request (2026 revision), or once for its session. */
export function showsCards(server: Server, { mcpReq }: ServerContext): boolean {
  const { [CLIENT_CAPABILITIES_META_KEY]: given } = { ...mcpReq.envelope } as Record<string, unknown>
  const capabilities = given ?? server.getClientCapabilities()
  return Object.hasOwn({ ...(capabilities as { extensions?: object } | undefined)?.extensions }, EXTENSION)
}

/** One document, built from the parts of the pages, tells the cards apart; no list names it. */
const uriOf = (card: Card) => `ui://${card}`

/** Returns the link from a tool to its card, for the tool's entry in the list. */
export const linkTo = (card: Card | undefined) => (card ? { _meta: { ui: { resourceUri: uriOf(card) } } } : {})

/** Reads a card; undefined for another URI, or if the pages are not built. */
export async function readCard(uri: string): Promise<ReadResourceResult | undefined> {
  if (!CARDS.some(card => uriOf(card) === uri)) return undefined
  const response = await env.ASSETS.fetch(new Request(DOCUMENT))
  if (!response.ok) return undefined
  const text = await response.text()
  return { contents: [{ uri, mimeType, text, _meta: { ui: { prefersBorder: true } } }] }
}
