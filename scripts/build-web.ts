import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildIfChanged } from './build-output.ts'

// `npm run build:web`: builds web/ into public/app if a source has changed since the last build. Wrangler runs this
// before it serves or deploys the Worker. --force always builds.

const root = join(import.meta.dirname, '..')
const out = join(root, 'public/app')
const cache = join(root, 'node_modules/.cache')

/** Builds next to the target and renames, so that a service that runs never sees half a build. */
function build(): void {
  const scratch = join(cache, `web-${process.pid}`)
  const old = `${scratch}-old`
  const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin/vite.js')
  try {
    for (const config of ['web/vite.config.ts', 'web/card.config.ts'])
      execFileSync(process.execPath, [vite, 'build', '--config', config, '--logLevel', 'warn'], {
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

const sources = ['web/**/*', 'packages/client/src/**/*.ts', 'packages/protocol/src/*.ts']
await buildIfChanged({ name: 'web', sources, output: 'public/app/index.html' }, () => {
  mkdirSync(cache, { recursive: true })
  mkdirSync(dirname(out), { recursive: true })
  build()
})
