import { describe, expect, it } from 'vitest'
import { readOperationsPage, withProviders } from '../providers/nodes-table.ts'
import { providerNames } from '../providers/profiles.ts'
import { readResults } from '../providers/results.ts'

describe('the results of npm run providers', () => {
  const results = readResults()

  it('the results of npm run providers are those that docs/nodes.md shows', () => {
    const page = readOperationsPage()
    expect(page).toBe(withProviders(page, results))
  })

  it('the results of npm run providers have every profile, without a lost event and with 99 % of first tries', () => {
    expect(results.map(({ profile }) => profile)).toEqual(providerNames)
    for (const { profile, operations, firstTries, lost, doubled, falsehoods } of results) {
      expect({ profile, lost, doubled, falsehoods }).toEqual({ profile, lost: 0, doubled: 0, falsehoods: 0 })
      expect(firstTries / operations, profile).toBeGreaterThanOrEqual(0.99)
    }
  })

  it('the results of npm run providers have at most 30 KiB sent per intent, or 60 where signed reports come along and half of the log requests are repeated', () => {
    for (const { profile, perIntent } of results)
      expect(perIntent.kib, profile).toBeLessThanOrEqual(profile === 'robinhood-public' ? 60 : 30)
  })
})
