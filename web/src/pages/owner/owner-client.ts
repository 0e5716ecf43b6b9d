import { createClient } from '@agent-trading-service/client'

/**
 * Prepares messages of owners: it compares each quote with what was asked for before a wallet sees it, and repeats a
 * submission only with the same signature, so that it executes once.
 */
export const ownerClient = createClient({ baseUrl: window.location.origin })

export const isAddress = (text: string): text is `0x${string}` => /^0x[0-9a-fA-F]{40}$/.test(text.trim())
