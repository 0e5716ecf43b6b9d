import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns the modules that `wrangler deploy --dry-run --outdir` wrote next to a script, the script first. */
export function bundleModules(script: string) {
  const folder = dirname(script)
  const wasm = globSync('*.wasm', { cwd: folder }).map(path => ({
    type: 'CompiledWasm' as const,
    path,
    contents: new Uint8Array(readFileSync(join(folder, path))),
  }))
  return [{ type: 'ESModule' as const, path: 'worker.js', contents: readFileSync(script, 'utf8') }, ...wasm]
}
