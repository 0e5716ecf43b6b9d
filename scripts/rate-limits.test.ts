import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { rateLimits } from '../src/rate-limits.ts'

it('wrangler.toml configures the rate limits that the service tells its clients', () => {
  const wrangler = readFileSync(join(import.meta.dirname, '../wrangler.toml'), 'utf8')
  const configured = [
    ...wrangler.matchAll(/\[\[ratelimits\]\]\nname = "(\w+)"\n.*\nsimple = \{ limit = (\d+), period = (\d+) \}/g),
  ].map(([, binding, quota, windowSeconds]) => ({
    binding,
    quota: Number(quota),
    windowSeconds: Number(windowSeconds),
  }))
  expect(configured).toEqual(Object.values(rateLimits))
})
