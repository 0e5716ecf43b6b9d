import type { Networks } from '../requests/client-address.ts'

/** Each account that has signed lately adds one budget to its networks, up to this many. */
const MAX_SHARES = 9
/** An agent sends from few addresses, and a replayed body comes from many. */
const MAX_ADDRESSES_OF_ACCOUNT = 3
const MEMORY_MS = 600_000
const MAX_ACCOUNTS = 10_000
const MAX_DIGESTS = 50_000

type Sighting = { networks: Networks; at: number }

/**
 * Remembers from which networks accounts of registered agents have sent messages that nobody had sent before. A signed
 * message is no secret, so what a repeated one says of its sender is nothing.
 */
export function createVerifiedNetworks() {
  /** The addresses of each account, the oldest first; the accounts in the order of their last message. */
  const sightings = new Map<string, Sighting[]>()
  /** When each account was last seen in a network. */
  const accounts = new Map<string, Map<string, number>>()
  const digests = new Set<string>()

  function forget(account: string) {
    for (const { networks } of sightings.get(account) ?? [])
      for (const network of networks) {
        const ofNetwork = accounts.get(network)
        ofNetwork?.delete(account)
        if (ofNetwork?.size === 0) accounts.delete(network)
      }
    sightings.delete(account)
  }

  return {
    /** Whether a message of this digest was added before, so that its sender may be anyone. */
    knows: (digest: string): boolean => digests.has(digest),

    /** Adds a message that an account has signed, unless its digest was added before. */
    add(networks: Networks, account: string, digest: string): void {
      if (digests.has(digest)) return
      digests.add(digest)
      if (digests.size > MAX_DIGESTS) digests.delete(firstOf(digests))
      const others = (sightings.get(account) ?? []).filter(seen => seen.networks[0] !== networks[0])
      const kept = [...others.slice(1 - MAX_ADDRESSES_OF_ACCOUNT), { networks, at: Date.now() }]
      forget(account)
      sightings.set(account, kept)
      for (const { networks, at } of kept)
        for (const network of networks) accounts.set(network, (accounts.get(network) ?? new Map()).set(account, at))
      if (sightings.size > MAX_ACCOUNTS) forget(firstOf(sightings.keys()))
    },

    /** Returns how many budgets accounts have added to a network. */
    sharesOf(network: string): number {
      const since = Date.now() - MEMORY_MS
      let shares = 0
      for (const at of accounts.get(network)?.values() ?? []) if (at > since && ++shares === MAX_SHARES) break
      return shares
    },
  }
}

const firstOf = (values: Iterable<string>): string => values[Symbol.iterator]().next().value ?? ''
