import { isPublicAddress } from './target.ts'

/** Whether every address of a name is public. */
export type HostCheck =
  | { kind: 'public' }
  | { kind: 'refused'; problem: string }
  /** The resolver did not respond. */
  | { kind: 'unknown' }

const RESOLVER_TIMEOUT_MS = 3_000
/** Types of DNS records. */
const A = 1
const AAAA = 28
const NO_ERROR = 0

type DnsAnswer = { Status?: number; Answer?: { type?: number; data?: string }[] }

/**
 * Resolves a host over DNS-over-HTTPS and checks all of its addresses, because a Worker's `fetch` resolves names itself and
 * does not tell. The name can change between this check and the connection.
 */
export async function checkHost(host: string, resolverUrl: string): Promise<HostCheck> {
  const answers = await Promise.all([A, AAAA].map(type => resolve(host, type, resolverUrl)))
  if (answers.some(answer => answer === undefined)) return { kind: 'unknown' }
  const addresses = answers.flatMap(answer => answer ?? [])
  if (addresses.length === 0) return { kind: 'refused', problem: `the host ${host} has no address` }
  const isPublic = addresses.every(isPublicAddress)
  return isPublic
    ? { kind: 'public' }
    : { kind: 'refused', problem: `the host ${host} has an address that is not public` }
}

/** Returns the addresses of one type; undefined if the resolver does not say. */
async function resolve(host: string, type: number, resolverUrl: string): Promise<string[] | undefined> {
  const url = new URL(resolverUrl)
  url.searchParams.set('name', host)
  url.searchParams.set('type', `${type}`)
  try {
    const response = await fetch(url, {
      headers: { accept: 'application/dns-json' },
      redirect: 'manual',
      signal: AbortSignal.timeout(RESOLVER_TIMEOUT_MS),
    })
    if (!response.ok) return undefined
    const { Status, Answer = [] } = (await response.json()) as DnsAnswer
    // A name that does not exist has no address; any other status says nothing about it.
    if (Status !== NO_ERROR && Status !== 3) return undefined
    return Answer.flatMap(record => (record.type === type && record.data !== undefined ? [record.data] : []))
  } catch {
    return undefined
  }
}
