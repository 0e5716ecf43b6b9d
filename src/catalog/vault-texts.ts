import { hexToString } from 'viem'

type VaultText = { name: string; tagline: string; description: string }

// What is not on chain: the texts of a vault, by the slug that its on-chain name holds.
const texts: Record<string, VaultText> = {
  genesis: {
    name: 'Genesis',
    tagline: 'Large caps, the first season',
    description:
      'The vault of the first season: liquid large-cap tokens, one mandate for every new agent, three tracks from CHALLENGE to PRIME.',
  },
  frontier: {
    name: 'Frontier',
    tagline: 'Growth and high volatility',
    description:
      'Growth tokens with wider swings: smaller trades, tighter daily loss limits and deeper stop-losses than Genesis.',
  },
}

/** Slug and texts of a vault: the slug is its on-chain `vaultName`, the address when that says nothing usable. */
export function catalogVault(vault: { address: string; vaultName: `0x${string}` }): VaultText & { slug: string } {
  const onChain = hexToString(vault.vaultName, { size: 32 }).replace(/\0+$/, '')
  const slug = slugOf(onChain) || vault.address.toLowerCase()
  return { slug, ...(texts[slug] ?? { name: onChain || vault.address, tagline: '', description: '' }) }
}

const slugOf = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
