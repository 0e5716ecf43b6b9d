import { type NamedVault, onChainName, vaultSlug } from './vault-slug.ts'

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

/** Returns the texts of a vault. A vault without texts gets its on-chain name and empty texts. */
export const vaultTexts = (vault: NamedVault): VaultText =>
  TEXTS[vaultSlug(vault)] ?? { name: onChainName(vault) || vault.address, tagline: '', description: '' }
