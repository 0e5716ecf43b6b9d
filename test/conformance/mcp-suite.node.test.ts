import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'

// The official conformance suite: all scenarios of the last revision with sessions, and the newest one's required
// scenarios.
const SELECTIONS = {
  '2025-11-25': ['--spec-version', '2025-11-25', '--suite', 'all'],
  '2026-07-28': ['--requirements', '2026-07-28'],
}
const REVISIONS = Object.keys(SELECTIONS) as (keyof typeof SELECTIONS)[]

const suite = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
)
const results = mkdtempSync(join(tmpdir(), 'mcp-conformance-'))
afterAll(() => rmSync(results, { recursive: true, force: true }))

/** Runs the suite against a service and returns its exit code and summary. */
function runSuite(url: string, args: readonly string[]): Promise<{ code: number | null; summary: string }> {
  const child = spawn(process.execPath, [suite, 'server', '--url', `${url}/mcp`, '-o', results, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve({ code, summary: output.slice(output.indexOf('=== SUMMARY')) }))
  })
}

describe('the service', () => {
  it.each(REVISIONS)('the service fails only the scenarios of %s that need fixtures', async revision => {
    const baseline = join(import.meta.dirname, `baseline.${revision}.yml`)
    const { code, summary } = await runSuite(inject('serviceUrl'), [
      ...SELECTIONS[revision],
      '--expected-failures',
      baseline,
    ])
    expect(summary).toContain('Total:')
    expect(summary).not.toMatch(/Unexpected failures|Stale baseline/)
    expect(code).toBe(0)
  })
})

describe("the service's transport with the suite's fixtures", () => {
  let worker: Worker
  beforeAll(async () => {
    worker = await startWorker({ port: await freePort(), vars: {}, config: 'wrangler.conformance.toml' })
  })
  afterAll(() => worker?.stop())

  it.each(REVISIONS)(
    "the service's transport with the suite's fixtures passes every scenario that %s requires",
    async revision => {
      const { code, summary } = await runSuite(worker.url, SELECTIONS[revision])
      const [required = ''] = summary.split('Not scored')
      const failed = [...required.matchAll(/✗ (\S+):/g)].map(([, name]) => name)
      // The suite also runs scenarios of the tasks extension, which the service does not offer.
      expect(failed.filter(name => !name?.startsWith('tasks-'))).toEqual([])
      expect(required).toMatch(/✓ tools-list: \d+ passed, 0 failed/)
      expect(code).toBe(0)
    },
  )
})
