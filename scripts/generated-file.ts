import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * Writes a generated file. With `--check` on the command line it writes nothing; if the committed file differs, it
 * names the npm script that regenerates it and sets the exit code to 1.
 */
export function writeGenerated(path: string, content: string | Uint8Array, npmScript: string): void {
  if (!process.argv.includes('--check')) {
    writeFileSync(path, content)
    return
  }
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return
  console.error(`${basename(path)} is stale: run \`npm run ${npmScript}\` and commit the result.`)
  process.exitCode = 1
}
