import { hexToString } from 'viem'

/** A vault by its address and its on-chain name (bytes32). */
export type NamedVault = { address: string; vaultName: `0x${string}` }

/**
 * Returns the slug of a vault, its public id: from its on-chain name, or the address if that has no usable characters.
 */
export const vaultSlug = (vault: NamedVault): string =>
  onChainName(vault)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '') || vault.address.toLowerCase()

/** Returns the on-chain name of a vault as text. */
export const onChainName = ({ vaultName }: Pick<NamedVault, 'vaultName'>): string =>
  hexToString(vaultName, { size: 32 }).replace(/\0+$/, '')
