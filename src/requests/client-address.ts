import ipaddr from 'ipaddr.js'

/** A home connection often has a /56, a site a /48. */
const IPV6_PREFIX_BITS = [64, 56, 48]
const BITS_PER_GROUP = 16
/** What an IPv4 client is to a socket for both protocols. As IPv6, all of them would be one network. */
const MAPPED_IPV4 = /^(::|0(:0){4}:)ffff:/i
/** How much each of a client's networks may have, as a multiple of an address: a provider's /48 has many clients. */
export const NETWORK_SHARES = [1, 4, 16] as const

/** A client's networks, the narrowest first. */
export type Networks = readonly [string, ...string[]]

/**
 * Returns the networks of the client that sent a request, the narrowest first: its IPv4 address, or the /64, /56 and
 * /48 of its IPv6 address, because a client usually has all of the first and often the others. `unknown` without the
 * header, which only Cloudflare and its local runtime set.
 */
export function clientNetworksOf(headers: Headers): Networks {
  const given = headers.get('cf-connecting-ip') ?? 'unknown'
  const address = MAPPED_IPV4.test(given) && ipaddr.isValid(given) ? ipaddr.process(given).toString() : given
  if (!address.includes(':')) return [address]
  const groups = groupsOf(address)
  const [narrowest = '', ...wider] = IPV6_PREFIX_BITS.map(bits => networkOf(groups, bits))
  return [narrowest, ...wider]
}

/** Returns the first groups of an IPv6 address, with zeros after the prefix. */
function networkOf(groups: readonly string[], bits: number): string {
  const kept = groups.slice(0, Math.ceil(bits / BITS_PER_GROUP))
  const freeBits = kept.length * BITS_PER_GROUP - bits
  const last = (Number.parseInt(kept.at(-1) ?? '0', 16) >> freeBits) << freeBits
  return `${[...kept.slice(0, -1), last.toString(16)].join(':')}${bits === IPV6_PREFIX_BITS[0] ? '' : `/${bits}`}`
}

function groupsOf(address: string): string[] {
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...last]
}
