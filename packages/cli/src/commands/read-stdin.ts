import { buffer } from 'node:stream/consumers'
import { Failure } from '../failure.ts'
import { decodeText } from '../text-file.ts'

/** Reads standard input as text, without a byte order mark. */
export const readStdin = async (): Promise<string> => decodeText(await buffer(process.stdin), 'Standard input')

/** Reads one JSON object from standard input. Throws `INPUT_INVALID`. */
export async function readJsonFromStdin(what: string): Promise<Record<string, unknown>> {
  const given = process.stdin.isTTY ? '' : await readStdin()
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
