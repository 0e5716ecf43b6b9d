import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'

/** A signed purchase. `usdc` is in base units. */
type Purchase = { id: string; at: number; usdc: string }
type Withdrawal = { withdrawn: string }
type Row = Purchase | Withdrawal

const DAY_MS = 86_400_000

/**
 * Adds a purchase to the log of this machine and returns whether the purchases of the last 24 hours, with this one, stay
 * within the limit. If they do not, the purchase is withdrawn again.
 *
 * Processes need no lock: each appends its row in one write, then counts all other rows. Of two that append at once, at least
 * one sees the other, also where midnight puts them into two files. The same id counts once, so a repeated intent is no second
 * purchase.
 */
export function logPurchase(
  home: string,
  { id, usdc, limit, now = Date.now() }: { id: string; usdc: bigint; limit: bigint | undefined; now?: number },
): { isWithin: boolean; spent: bigint } {
  const folder = join(home, 'purchases')
  makePrivateFolder(home)
  makePrivateFolder(folder)
  const file = `${new Date(now).toISOString().slice(0, 10)}.ndjson`
  const append = (row: Row) => appendFileSync(join(folder, file), `${JSON.stringify(row)}\n`, { mode: 0o600 })
  const known = countedPurchases(folder, now)
  const isRepeated = known.has(id)
  if (!isRepeated) append({ id, at: now, usdc: `${usdc}` })
  const spent = sumWithout(countedPurchases(folder, now), id)
  const isWithin = limit === undefined || spent + usdc <= limit
  if (!isWithin && !isRepeated) append({ withdrawn: id })
  removeOldFiles(folder, now)
  return { isWithin, spent }
}

/** Returns what was bought in the last 24 hours, in USDC base units. */
export function spentToday(home: string, now: number = Date.now()): bigint {
  const folder = join(home, 'purchases')
  if (!existsSync(folder)) return 0n
  return sumWithout(countedPurchases(folder, now), undefined)
}

function sumWithout(purchases: Map<string, bigint>, id: string | undefined): bigint {
  let sum = 0n
  for (const [each, usdc] of purchases) if (each !== id) sum += usdc
  return sum
}

/** Returns the purchases of the last 24 hours by id. */
function countedPurchases(folder: string, now: number): Map<string, bigint> {
  const purchases = new Map<string, bigint>()
  for (const file of logFiles(folder))
    for (const row of rowsOf(join(folder, file))) {
      if ('withdrawn' in row) purchases.delete(row.withdrawn)
      else if (row.at > now - DAY_MS) purchases.set(row.id, BigInt(row.usdc))
    }
  return purchases
}

const logFiles = (folder: string) =>
  readdirSync(folder)
    .filter(file => file.endsWith('.ndjson'))
    .sort()

/**
 * Throws if a row is damaged: to skip it would be to forget a purchase. Only a last row without its end is left out: another
 * process is writing it, and counts this one's row afterwards.
 */
function rowsOf(path: string): Row[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  lines.pop()
  try {
    return lines.filter(line => line !== '').map(line => JSON.parse(line) as Row)
  } catch {
    throw new Failure('limits', `The log of purchases ${path} is damaged, so the limit per day cannot be checked.`, {
      code: 'PURCHASE_LOG_DAMAGED',
      remedy: 'Correct the line that is not JSON, or delete the file once its purchases are older than a day.',
    })
  }
}

function removeOldFiles(folder: string, now: number): void {
  const oldest = new Date(now - 2 * DAY_MS).toISOString().slice(0, 10)
  for (const file of logFiles(folder)) if (file < `${oldest}.ndjson`) rmSync(join(folder, file), { force: true })
}
