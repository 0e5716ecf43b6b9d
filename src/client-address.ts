const IPV6_NETWORK_GROUPS = 4

/**
 * Returns the address of the client that sent a request, as Cloudflare names it; for IPv6 the /64 network, because a
 * client usually has all of it. `unknown` without the header, which only Cloudflare and its local runtime set.
 */
export function clientAddressOf(headers: Headers): string {
  const address = headers.get('cf-connecting-ip') ?? 'unknown'
  return address.includes(':') ? ipv6NetworkOf(address) : address
}

function ipv6NetworkOf(address: string): string {
  const [head = '', tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...last].slice(0, IPV6_NETWORK_GROUPS).join(':')
}
