import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'

/**
 * Variables whose URLs the operator chose: nodes, a facilitator and market data may be on the operator's own network.
 */
const URLS = ['RPC_URL', 'X402_RPC_URL', 'X402_FACILITATOR_URL', 'PRICE_PROVIDER_URL', 'REHEARSAL_URL']

/**
 * Returns what the service may connect to: the public internet, and the addresses of the operator's own URLs, as they
 * resolve now, with further ranges. workerd compares the address that it connects to, so that no name and no redirect
 * of a webhook leads elsewhere.
 */
export async function reachableAddresses(
  vars: Readonly<Record<string, string>>,
  ranges: readonly string[],
): Promise<string[]> {
  if (vars.WEBHOOK_LOCAL_TARGETS === 'true') return ['public', 'private', 'local']
  const hosts = URLS.flatMap(name => vars[name]?.split(/[,\s]+/) ?? [])
    .filter(url => URL.canParse(url))
    .map(url => new URL(url).hostname.replace(/^\[|\]$/g, ''))
  const addresses = await Promise.all([...new Set(hosts)].map(host => lookup(host, { all: true }).catch(() => [])))
  const own = addresses.flat().map(({ address }) => `${address}/${isIP(address) === 6 ? 128 : 32}`)
  return [...new Set(['public', ...own, ...ranges])]
}

/** Returns the worker through which another one reaches these addresses, and no others. */
export const outboundWorker = (allow: string[]) => ({
  name: 'outbound',
  modules: true as const,
  script: 'export default { fetch: (request, { NETWORK }) => NETWORK.fetch(request) }',
  compatibilityDate: '2026-01-01',
  serviceBindings: { NETWORK: { network: { allow } } },
})
