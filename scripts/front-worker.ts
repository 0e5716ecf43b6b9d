// The Worker in front of the service under `npm run serve`. On Cloudflare the platform names the client's address in
// CF-Connecting-IP; here this Worker does, so that no client can choose the address by which it is limited.

type FrontEnv = { SERVICE: Fetcher; TRUSTED_PROXIES: string }

export default {
  fetch(request: Request, { SERVICE, TRUSTED_PROXIES }: FrontEnv): Promise<Response> {
    const headers = new Headers(request.headers)
    const peer = `${request.cf?.clientIp ?? ''}`
    const address = clientAddress(peer, headers.get('X-Forwarded-For') ?? '', Number(TRUSTED_PROXIES))
    headers.set('CF-Connecting-IP', address)
    return SERVICE.fetch(new Request(request, { headers, redirect: 'manual' }))
  },
}

/**
 * Returns the address of the client. Behind trusted proxies it is the entry of X-Forwarded-For that the outermost of
 * them added; each proxy appends one, and clients can write whatever they like before. Otherwise it is the other end of
 * the connection, `peer`.
 */
export function clientAddress(peer: string, forwardedFor: string, trustedProxies: number): string {
  const hops = forwardedFor.split(',').map(hop => hop.trim())
  const named = trustedProxies > 0 ? hops.at(-trustedProxies) : undefined
  return withoutPort(named || peer) || 'unknown'
}

/** Removes the port from `192.0.2.1:80` or `[2001:db8::1]:80`. */
function withoutPort(address: string): string {
  const [, v6] = /^\[([^\]]+)\](?::\d+)?$/.exec(address) ?? []
  return v6 ?? address.replace(/^([\d.]+):\d+$/, '$1')
}
