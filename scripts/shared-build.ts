import { existsSync, mkdirSync, mkdtempSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'

/** Where the processes of one test run share what they build; scripts/test.ts makes and removes it. */
const shared = process.env.SHARED_BUILDS

/**
 * Builds into a folder and returns it: the given one, or, in a test run, one that other processes of the run use too.
 */
export async function sharedBuild(
  name: string,
  own: string,
  build: (folder: string) => Promise<unknown>,
): Promise<string> {
  if (shared === undefined) {
    await build(own)
    return own
  }
  const folder = join(shared, name)
  if (existsSync(folder)) return folder
  mkdirSync(shared, { recursive: true })
  const built = mkdtempSync(`${folder}-`)
  await build(built)
  await rename(built, folder).catch(() => {}) // another process was faster
  return folder
}
