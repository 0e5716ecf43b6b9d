import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'

/** A signed purchase, or a registration with its fee. `usdc` is in base units. */
type Purchase = { id: string; at: number; usdc: string; registers?: true }
type Withdrawal = { withdrawn: string }
type Row = Purchase | Withdrawal

const DAY_MS = 86_400_000
type Logged = { id: string; usdc: bigint; registers?: true | undefined }

/** What was signed in 24 hours: purchases and fees in USDC base units, and the number of registrations. */
export type Spent = { usdc: bigint; registrations: number }

/**
 * Adds a purchase or a registration to the log of this machine and returns whether those of the last 24 hours, with
 * this one, stay within the limits. If they do not, it is withdrawn again. `spent` is what the others come to.
 *
 * Processes need no lock: each appends its row in one write, then counts all other rows. Of two that append at once, at
 * least one sees the other, also where midnight puts them into two files. The same id counts once, so a repeated intent
 * is no second purchase.
 */
export function logPurchase(
  home: string,
  { id, usdc, registers, isWithin, now = Date.now() }: Logged & { isWithin: (spent: Spent) => boolean; now?: number },
): { isWithin: boolean; spent: Spent } {
  const folder = join(home, 'purchases')
  makePrivateFolder(home)
  makePrivateFolder(folder)
  const file = `${new Date(now).toISOString().slice(0, 10)}.ndjson`
  const append = (row: Row) => appendFileSync(join(folder, file), `${JSON.stringify(row)}\n`, { mode: 0o600 })
  const known = countedPurchases(folder, now)
  const isRepeated = known.has(id)
  if (!isRepeated) append({ id, at: now, usdc: `${usdc}`, ...(registers && { registers }) })
  const spent = sumWithout(countedPurchases(folder, now), id)
  const fits = isWithin(spent)
  if (!fits && !isRepeated) append({ withdrawn: id })
  removeOldFiles(folder, now)
  return { isWithin: fits, spent }
}

/** Returns what was bought and paid as fees in the last 24 hours, and how often an agent was registered. */
export function spentToday(home: string, now: number = Date.now()): Spent {
  const folder = join(home, 'purchases')
  if (!existsSync(folder)) return { usdc: 0n, registrations: 0 }
  return sumWithout(countedPurchases(folder, now), undefined)
}

function sumWithout(purchases: Map<string, Purchase>, id: string | undefined): Spent {
  const others = [...purchases.values()].filter(each => each.id !== id)
  return {
    usdc: others.reduce((sum, { usdc }) => sum + BigInt(usdc), 0n),
    registrations: others.filter(({ registers }) => registers).length,
  }
}

/** Returns the purchases and registrations of the last 24 hours by id. */
function countedPurchases(folder: string, now: number): Map<string, Purchase> {
  const purchases = new Map<string, Purchase>()
  for (const file of logFiles(folder))
    for (const row of rowsOf(join(folder, file))) {
      if ('withdrawn' in row) purchases.delete(row.withdrawn)
      else if (row.at > now - DAY_MS) purchases.set(row.id, row)
    }
  return purchases
}

const logFiles = (folder: string) =>
  readdirSync(folder)
    .filter(file => file.endsWith('.ndjson'))
    .sort()

/**
 * Throws if a row is damaged: to skip it would be to forget a purchase. Only a last row without its end is left out:
 * another process is writing it, and counts this one's row afterwards.
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
