import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

// `npm run build:web`: builds web/ into public/app if a source has changed since the last build. Wrangler runs this before
// it serves or deploys the Worker. --force always builds.

const root = join(import.meta.dirname, '..')
const out = join(root, 'public/app')
const cache = join(root, 'node_modules/.cache')
const stamp = join(cache, 'web-build.txt')

/** Returns a hash of everything the pages are built from. */
function hashOfSources(): string {
  const files = globSync(['web/**/*.*', 'packages/client/src/**/*.ts'], { cwd: root })
  const hash = createHash('sha256')
  for (const file of ['package-lock.json', ...files.sort()]) hash.update(file).update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

/** Builds next to the target and renames, so that a service that runs never sees half a build. */
function build(): void {
  const scratch = join(cache, `web-${process.pid}`)
  const old = `${scratch}-old`
  const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin/vite.js')
  try {
    execFileSync(process.execPath, [vite, 'build', '--config', 'web/vite.config.ts', '--logLevel', 'warn'], {
      cwd: root,
      env: { ...process.env, NODE_ENV: 'production', WEB_OUT_DIR: scratch },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    putInPlace(scratch, old)
  } finally {
    for (const folder of [scratch, old]) rmSync(folder, { recursive: true, force: true })
  }
}

function putInPlace(scratch: string, old: string): void {
  try {
    if (existsSync(out)) renameSync(out, old)
    renameSync(scratch, out)
  } catch (error) {
    // Another process may have been faster with the same sources.
    if (!existsSync(join(out, 'index.html'))) throw error
  }
}

const hash = hashOfSources()
const built = existsSync(stamp) && existsSync(join(out, 'index.html')) ? readFileSync(stamp, 'utf8') : ''
if (built !== hash || process.argv.includes('--force')) {
  mkdirSync(cache, { recursive: true })
  mkdirSync(dirname(out), { recursive: true })
  build()
  writeFileSync(stamp, hash)
}
