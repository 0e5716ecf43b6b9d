import ipaddr from 'ipaddr.js'
import { MAX_URL_LENGTH } from '../resources/webhook.ts'

/** The rules for a well-formed target. */
export type TargetRules = {
  /** Whether plain HTTP, other ports and private addresses are accepted: for embedded chains. */
  allowsLocalTargets: boolean
  /** Hosts of this service, which must not call itself. */
  ownHosts: readonly string[]
}

/** A URL to which events may be posted, or why they may not. */
type Target = { kind: 'accepted'; url: URL } | { kind: 'refused'; problem: string }

/**
 * Names that never belong to a public host (RFC 6761, RFC 6762, RFC 8375, RFC 9476, and what clouds and routers use).
 */
const PRIVATE_SUFFIXES = [
  'alt',
  'corp',
  'home',
  'home.arpa',
  'internal',
  'intranet',
  'invalid',
  'lan',
  'local',
  'localdomain',
  'localhost',
  'onion',
  'private',
]

const refused = (problem: string): Target => ({ kind: 'refused', problem })

/**
 * Checks a URL before any name is resolved. The URL parser turns every spelling of an IPv4 address (octal, hexadecimal,
 * one integer) into the dotted form, so one check of the address is enough.
 */
export function checkTarget(text: string, { allowsLocalTargets, ownHosts }: TargetRules): Target {
  const url = text.length <= MAX_URL_LENGTH ? URL.parse(text) : null
  if (url === null) return refused(`it must be a URL of at most ${MAX_URL_LENGTH} characters`)
  const { protocol, username, password, hash, port } = url
  if (protocol !== 'https:' && !(allowsLocalTargets && protocol === 'http:'))
    return refused('it must begin with https://')
  if (username !== '' || password !== '') return refused('it must not contain a user name or a password')
  if (hash !== '') return refused('it must not contain a fragment')
  if (allowsLocalTargets) return { kind: 'accepted', url }
  if (port !== '') return refused('it must use port 443')
  const host = hostOf(url)
  if (isAddress(host))
    return isPublicAddress(host) ? { kind: 'accepted', url } : refused(`${host} is not a public address`)
  const isPrivateName = PRIVATE_SUFFIXES.some(suffix => host === suffix || host.endsWith(`.${suffix}`))
  if (isPrivateName || !host.includes('.')) return refused(`${host} is not a public host name`)
  return ownHosts.includes(host) ? refused('it must not be this service') : { kind: 'accepted', url }
}

/** Returns the host of a URL without the brackets of IPv6 and without a final dot. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

export const isAddress = (host: string): boolean => ipaddr.isValid(host)

/**
 * Returns whether an address is global unicast: not private, loopback, link-local, shared, multicast, mapped or
 * reserved.
 */
function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast') return false
  // Beyond 2000::/3 the library calls unassigned addresses unicast.
  return address.kind() === 'ipv4' || ((address.toByteArray()[0] ?? 0) & 0xe0) === 0x20
}

/** Whether every address of a name is public. */
type HostCheck =
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
 * Resolves a host over DNS-over-HTTPS and checks all of its addresses, because a Worker's `fetch` resolves names itself
 * and does not tell. The name can change between this check and the connection.
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
