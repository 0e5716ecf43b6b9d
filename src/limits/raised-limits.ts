import type { Networks } from '../requests/client-address.ts'

/** Each account whose signature was recently verified adds one quota to its networks, up to this many. */
const MAX_RAISES = 9
/** One account raises few addresses at a time: an agent sends from few, and a replayed body from many. */
const MAX_ADDRESSES_OF_SIGNER = 3
const SIGNER_MEMORY_MS = 600_000
const MAX_ADDRESSES = 10_000
const MAX_DIGESTS = 50_000

/** An address that an account has sent a new message from: its networks, the narrowest first. */
type Raise = { networks: Networks; at: number }

/**
 * Remembers from which networks accounts of registered agents have sent messages that nobody had sent before. A signed message
 * is no secret, so what a repeated one says of its sender is nothing.
 */
export function createRaisedLimits() {
  /** The raises of each account by narrowest network, the oldest first. */
  const raises = new Map<string, Map<string, Raise>>()
  /** How often each account raises each network. */
  const counts = new Map<string, Map<string, number>>()
  /** The accounts by the number of addresses that they raise. */
  const bySize = Array.from({ length: MAX_ADDRESSES_OF_SIGNER + 1 }, () => new Set<string>())
  const digests = new Set<string>()
  let size = 0

  function changeSize(signer: string, from: number, to: number) {
    bySize[from]?.delete(signer)
    if (to > 0) bySize[to]?.add(signer)
    size += to - from
  }

  function remove(signer: string, address: string) {
    const ofSigner = raises.get(signer)
    const raise = ofSigner?.get(address)
    if (ofSigner === undefined || raise === undefined) return
    ofSigner.delete(address)
    changeSize(signer, ofSigner.size + 1, ofSigner.size)
    if (ofSigner.size === 0) raises.delete(signer)
    for (const network of raise.networks) {
      const signers = counts.get(network)
      const left = (signers?.get(signer) ?? 1) - 1
      if (left > 0) signers?.set(signer, left)
      else signers?.delete(signer)
      if (signers?.size === 0) counts.delete(network)
    }
  }

  function add(signer: string, raise: Raise) {
    const ofSigner = raises.get(signer) ?? new Map<string, Raise>()
    raises.set(signer, ofSigner.set(raise.networks[0], raise))
    changeSize(signer, ofSigner.size - 1, ofSigner.size)
    for (const network of raise.networks) {
      const signers = counts.get(network) ?? new Map<string, number>()
      counts.set(network, signers.set(signer, (signers.get(signer) ?? 0) + 1))
    }
  }

  const removeOldest = (signer: string | undefined) => {
    const [oldest] = raises.get(signer ?? '')?.keys() ?? []
    if (signer !== undefined && oldest !== undefined) remove(signer, oldest)
  }

  return {
    /** Whether a message of this digest has raised networks before. */
    knows: (digest: string): boolean => digests.has(digest),

    /** Raises networks for an account, unless the digest has raised any before. */
    raise(networks: Networks, signer: string, digest: string): void {
      if (digests.has(digest)) return
      digests.add(digest)
      const [oldestDigest] = digests
      if (digests.size > MAX_DIGESTS && oldestDigest !== undefined) digests.delete(oldestDigest)
      remove(signer, networks[0])
      if ((raises.get(signer)?.size ?? 0) >= MAX_ADDRESSES_OF_SIGNER) removeOldest(signer)
      // Of an account that has most, so that none takes the places of others.
      if (size >= MAX_ADDRESSES)
        removeOldest(
          bySize
            .findLast(signers => signers.size > 0)
            ?.values()
            .next().value,
        )
      add(signer, { networks, at: Date.now() })
    },

    /** Returns by how many quotas a network is raised. */
    countOf(network: string): number {
      const since = Date.now() - SIGNER_MEMORY_MS
      let count = 0
      for (const signer of counts.get(network)?.keys() ?? []) {
        let isRecent = false
        for (const [address, { networks, at }] of raises.get(signer) ?? [])
          if (at <= since) remove(signer, address)
          else isRecent ||= networks.includes(network)
        if (isRecent && ++count === MAX_RAISES) break
      }
      return count
    },
  }
}
