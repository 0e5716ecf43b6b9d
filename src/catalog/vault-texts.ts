import { hexToString } from 'viem'

type VaultText = { name: string; tagline: string; description: string }

/** Texts that are not on chain, by the slug of the vault's on-chain name. */
const TEXTS: Record<string, VaultText> = {
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

/**
 * Returns the slug and the texts of a vault. The slug comes from the on-chain `vaultName` (bytes32), or is the address if
 * that has no usable characters. A vault without texts gets its on-chain name and empty texts.
 */
export function catalogVault(vault: { address: string; vaultName: `0x${string}` }): VaultText & { slug: string } {
  const onChain = hexToString(vault.vaultName, { size: 32 }).replace(/\0+$/, '')
  const slug = slugOf(onChain) || vault.address.toLowerCase()
  return { slug, ...(TEXTS[slug] ?? { name: onChain || vault.address, tagline: '', description: '' }) }
}

const slugOf = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
