import { text } from 'node:stream/consumers'
import { Failure } from '../failure.ts'

/** Reads one JSON object from standard input. Throws `INPUT_INVALID`. */
export async function readJsonFromStdin(what: string): Promise<Record<string, unknown>> {
  const given = process.stdin.isTTY ? '' : await text(process.stdin)
  const parsed = parsedJson(given)
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>
  throw new Failure(
    'usage',
    `Standard input ${given.trim() === '' ? 'is empty' : 'is not a JSON object'}; ${what} is expected.`,
    {
      code: 'INPUT_INVALID',
      remedy: 'Pipe it in, as in: curl … | ats sign',
    },
  )
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
