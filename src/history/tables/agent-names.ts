import { defineTable, type Preparer } from './table.ts'

/** The beginning of a word of an agent's name, with what follows it. The name of an agent never changes. */
export type AgentNameWord = { agentId: number; block: number; word: string }

const MAX_WORDS = 8
const MAX_LENGTH = 32

export const agentNamesTable = defineTable<AgentNameWord>('agent_names', {
  word: ({ word }) => word,
  agent_id: ({ agentId }) => agentId,
  block: ({ block }) => block,
})

/**
 * Returns what a name can be found by: its text from each of the first words on, in lower case and without punctuation.
 */
export function wordsOfName(name: string): string[] {
  const words =
    name
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  return words.slice(0, MAX_WORDS).map((_, index) => shortened(words.slice(index).join(' ')))
}

/** Returns a text that somebody typed in the same form; empty if nothing can be found by it. */
export const prefixOf = (typed: string): string => wordsOfName(typed)[0] ?? ''

const shortened = (text: string) => [...text].slice(0, MAX_LENGTH).join('')

/** How many words of one search are looked at. */
const MAX_FOUND = 100

const FOUND = `SELECT agent_id FROM agent_names WHERE word >= ?1 AND word < ?2 ORDER BY word, agent_id LIMIT ${MAX_FOUND}`

/** Returns the query for the agents with a word that begins with a prefix, in the order of these words. */
export const selectAgentsByName = (db: Preparer, prefix: string) =>
  db.prepare(FOUND).bind(prefix, `${prefix}\u{10ffff}`)
