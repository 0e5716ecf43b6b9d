import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { parseUnits } from 'viem'
import { z } from 'zod'
import { Failure } from '../failure.ts'
import { assertWrittenByOwner } from '../keys/private-mode.ts'
import { readTextFile } from '../text-file.ts'

const USDC_DECIMALS = 6
const usdc = z
  .string()
  .regex(/^\d{1,15}(\.\d{1,6})?$/, 'must be an amount in USDC as a string, such as "250" or "99.50"')
  .transform(text => parseUnits(text, USDC_DECIMALS))

// Strict: a misspelled field would be no limit.
const schema = z.strictObject({
  perTradeUsdc: usdc.optional(),
  perDayUsdc: usdc.optional(),
  registrations: z.int().min(0).optional(),
  symbols: z.array(z.string().min(1)).optional(),
  until: z.iso.datetime({ offset: true, error: 'must be a time such as "2027-01-01T00:00:00Z"' }).optional(),
})

/**
 * What the limits file allows: amounts in USDC base units. A field that is absent limits nothing, unless it has a
 * default.
 */
export type Limits = {
  perTradeUsdc?: bigint | undefined
  perDayUsdc?: bigint | undefined
  /** Registrations in 24 hours; one by default. */
  registrations?: number | undefined
  symbols?: string[] | undefined
  until?: Date | undefined
}

export const limitsPath = (home: string): string => join(home, 'limits.json')

/** The files that this process has read: one that is gone later is no permission. */
const seen = new Set<string>()

/**
 * Reads the limits that the user has set for this machine; undefined without a file. Only the user writes the file: no
 * command and no tool does. Throws `LIMITS_INVALID` or `LIMITS_GONE`, so a file that is broken, cannot be read or was
 * deleted while `ats` ran allows nothing.
 */
export function readLimits(home: string): Limits | undefined {
  const path = limitsPath(home)
  if (isAbsent(path)) {
    if (!seen.has(path)) return undefined
    throw new Failure('limits', `The limits file ${path} is gone since this process started.`, {
      code: 'LIMITS_GONE',
      remedy: 'Put the file back, or start again to work without limits.',
    })
  }
  seen.add(path)
  const parsed = schema.safeParse(parsedJson(textOf(path), path))
  if (parsed.success) {
    const { until, ...limits } = parsed.data
    return { ...limits, until: until === undefined ? undefined : new Date(until) }
  }
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.')
  throw invalid(path, `${field ? `${field}: ` : ''}${issue?.message}`)
}

/** Only a file that is not there is absent: a link to nothing or a folder that cannot be searched is a broken file. */
function isAbsent(path: string): boolean {
  try {
    lstatSync(path)
    return false
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return true
    throw invalid(path, `it cannot be read (${codeOf(error)})`)
  }
}

function textOf(path: string): string {
  try {
    assertWrittenByOwner(path)
    return readTextFile(path)
  } catch (error) {
    throw error instanceof Failure ? error : invalid(path, `it cannot be read (${codeOf(error)})`)
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

const invalid = (path: string, problem: string) =>
  new Failure('limits', `The limits file ${path} is not valid: ${problem}.`, {
    code: 'LIMITS_INVALID',
    remedy: 'Correct the file. Its fields are perTradeUsdc, perDayUsdc, registrations, symbols and until.',
  })

function parsedJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(path, 'it is not JSON')
  }
}
