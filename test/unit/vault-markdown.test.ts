import { expect, it } from 'vitest'
import { vaultsMarkdown } from '../../src/resources/vault-markdown.ts'

const ADDRESS = '0x00000000000000000000000000000000000000A1'

it('Markdown escapes Markdown and HTML in the texts of a vault', () => {
  const hostile = '<img src=x onerror=alert(1)> [a](javascript:1) | `x` **b**\n# c\u2028- d &lt;'
  const vault = {
    id: 'v',
    slug: 'v',
    name: hostile,
    tagline: hostile,
    description: hostile,
    vaultTrackConfigs: [],
    chainId: 1,
    contractAddress: ADDRESS,
    asset: ADDRESS,
    totalAssets: '0',
    idleAssets: '0',
    tradingPaused: false,
  }
  const asOf = { blockNumber: '1', blockTimestamp: '1' }
  const markdown = vaultsMarkdown({ chainId: 1, vaults: [vault], total: 1, asOf })
  expect(markdown).not.toMatch(/(?<!\\)[<>[\]]|\n# c|\n- d|(?<!\\)\*\*b|(?<!\\)&/)
  expect(markdown).toContain('\\<img src=x')
})
