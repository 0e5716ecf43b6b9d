import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const demo = join(import.meta.dirname, '../../scripts/demo.ts')

it('the demo tells a whole life of an agent and ends by itself, on a known chain too', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [demo], {
    env: { ...process.env, CHAIN_ID: '46630' },
  })
  expect(stdout).toContain('(chain id 46630)')
  expect(stdout).toContain('paid over x402')
  expect(stdout).toContain('the keeper fires the stop-loss')
  expect(stdout).toMatch(/every step as expected\.\s*$/)
})
