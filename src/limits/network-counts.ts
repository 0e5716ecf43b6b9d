import { NETWORK_SHARES, type Networks } from '../requests/client-address.ts'

/** How much one address may hold, and all together. Wider networks may hold more than one address. */
type NetworkLimits = { perAddress: number; total: number }

/** Counts what the networks of clients hold: sessions, subscriptions or streams. */
export function createNetworkCounts({ perAddress, total }: NetworkLimits) {
  const counts = NETWORK_SHARES.map(() => new Map<string, number>())
  let held = 0
  const countOf = (level: number, network: string) => counts[level]?.get(network) ?? 0

  function change(networks: Networks, by: number) {
    held += by
    for (const [level, network] of networks.entries()) {
      const count = countOf(level, network) + by
      if (count > 0) counts[level]?.set(network, count)
      else counts[level]?.delete(network)
    }
  }

  return {
    add: (networks: Networks) => change(networks, 1),
    remove: (networks: Networks) => change(networks, -1),
    size: () => held,
    isFull: () => held >= total,

    /** Whether each of the networks holds less than it may. */
    hasRoom: (networks: Networks, maxPerAddress = perAddress): boolean =>
      networks.every((network, level) => countOf(level, network) < maxPerAddress * (NETWORK_SHARES[level] ?? 1)),

    /** Returns the network, as wide as it is counted, that holds most: at least two more than that of this client. */
    holderOfMost(networks: Networks): string | undefined {
      let holder: string | undefined
      let most = countOf(networks.length - 1, networks.at(-1) ?? '') + 1
      const widest = counts.flatMap((ofLevel, level) => [...ofLevel].filter(([network]) => isWidest(network, level)))
      for (const [network, count] of widest) if (count > most) [holder, most] = [network, count]
      return holder
    },
  }
}

/** An IPv4 address has no wider network. */
const isWidest = (network: string, level: number) => level === NETWORK_SHARES.length - 1 || network.includes('.')
