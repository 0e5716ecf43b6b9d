import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// A tab that stays open during a deploy still loads scripts of the replaced build, so they are served for another day.

const KEPT_MS = 86_400_000
/** Next to index.html: maps each file of assets/ to when a build replaced it (epoch ms), or null for a current file. */
const LIST = 'assets.json'

/** Reads a file of the pages that were served until now, by its path below /app; undefined if there is none. */
type ReadServed = (path: string) => Promise<Uint8Array | undefined>

/** Adds the assets of the pages that a build replaces to its folder, and lists them. Returns how many it added. */
export async function keepReplacedAssets(folder: string, readServed: ReadServed, now = Date.now()): Promise<number> {
  const assets = join(folder, 'assets')
  const earlier = existsSync(join(folder, LIST)) ? parseList(readFileSync(join(folder, LIST))) : new Map()
  const files = new Map<string, number | null>()
  for (const file of readdirSync(assets))
    if (typeof earlier.get(file) === 'number') rmSync(join(assets, file))
    else files.set(file, null)
  let added = 0
  for (const [file, replacedAt] of parseList(await readServed(LIST))) {
    if (files.has(file) || now - (replacedAt ?? now) >= KEPT_MS) continue
    const content = await readServed(`assets/${file}`)
    if (content === undefined) continue
    writeFileSync(join(assets, file), content)
    files.set(file, replacedAt ?? now)
    added++
  }
  writeFileSync(join(folder, LIST), JSON.stringify(Object.fromEntries(files)))
  return added
}

/** Returns the files in a list, without names that lead out of the folder. */
function parseList(content: Uint8Array | undefined): Map<string, number | null> {
  const list: unknown = JSON.parse(content === undefined ? '{}' : new TextDecoder().decode(content))
  return new Map(
    Object.entries(list ?? {}).filter(
      (entry): entry is [string, number | null] =>
        /^\w[\w.-]*$/.test(entry[0]) && (entry[1] === null || typeof entry[1] === 'number'),
    ),
  )
}
