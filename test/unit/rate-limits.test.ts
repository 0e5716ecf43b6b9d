import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { DEFAULT_RATE_LIMITS, type RateLimitName } from '../../src/config/config.ts'
import { rateLimitBindings } from '../../src/rate-limits.ts'

it('wrangler.toml configures the rate limits that are the defaults of the variables', () => {
  const wrangler = readFileSync(join(import.meta.dirname, '../../wrangler.toml'), 'utf8')
  const configured = [
    ...wrangler.matchAll(/\[\[ratelimits\]\]\nname = "(\w+)"\n.*\nsimple = \{ limit = (\d+), period = 60 \}/g),
  ].map(([, binding, quota]) => [binding, Number(quota)])
  expect(configured).toEqual(
    Object.entries(rateLimitBindings).map(([name, binding]) => [binding, DEFAULT_RATE_LIMITS[name as RateLimitName]]),
  )
})
