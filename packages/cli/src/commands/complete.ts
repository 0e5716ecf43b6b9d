import { Argument, type Command } from 'commander'
import { homeFolder, listKeys } from '../keys/key-folder.ts'
import { createReader } from '../trading/create-reader.ts'
import { storedPinsOf, symbolsOf } from '../trading/pins.ts'
import { agentOption, createServiceCommand, type ServiceOptions } from './options.ts'

/**
 * What completion looks up while it runs: names of keys, symbols that this machine knows, open positions of the agent.
 */
export const WORD_KINDS = ['keys', 'symbols', 'positions'] as const
export type WordKind = (typeof WORD_KINDS)[number]

type CompleteOptions = ServiceOptions & { agent?: string }

/** `ats complete`, which the scripts of `ats completion` call: prints the words of a kind, one per line. */
export function completeCommand(): Command {
  return createServiceCommand('complete', 'print what completion offers', 'ats complete symbols')
    .addArgument(new Argument('<kind>', 'what to list').choices(WORD_KINDS))
    .addOption(agentOption())
    .action(async (kind: WordKind, options: CompleteOptions) => {
      for (const word of await words[kind](options)) process.stdout.write(`${word}\n`)
    })
}

const words: Record<WordKind, (options: CompleteOptions) => string[] | Promise<string[]>> = {
  keys: () => listKeys(homeFolder()).keys.map(({ name }) => name),
  symbols: ({ url }) => [...symbolsOf(storedPinsOf(homeFolder(), url)).keys()].filter(isWord),
  async positions({ url, agent }) {
    if (agent === undefined) return []
    // A person waits for the answer at the prompt.
    const { positions } = await createReader({ url, timeout: 1 }).listPositions({ agentId: agent })
    return positions.map(({ symbol }) => symbol).filter(isWord)
  },
}

/** Symbols come from the service, and a shell reads the words. */
const isWord = (text: string) => /^[\w.-]+$/.test(text)
