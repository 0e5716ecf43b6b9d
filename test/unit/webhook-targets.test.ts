import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  createSecret,
  MAX_RETRY_DELAY_MS,
  parseRetryAfter,
  retryDelayMs,
  signDelivery,
} from '../../src/webhooks/attempt.ts'
import { checkHost, checkTarget } from '../../src/webhooks/target.ts'

const rules = { allowsLocalTargets: false, ownHosts: ['api.agents.example'] }

describe('a target', () => {
  it.each([
    'https://agents.example/events',
    'https://agents.example:443/events?token=a',
    'https://xn--bcher-kva.example/',
    'https://8.8.8.8/events',
    'https://[2606:4700::1111]/events',
  ])('a target %s is accepted', url => {
    expect(checkTarget(url, rules)).toMatchObject({ kind: 'accepted' })
  })

  it.each([
    ['plain HTTP', 'http://agents.example/'],
    ['another protocol', 'ftp://agents.example/'],
    ['a file', 'file:///etc/passwd'],
    ['no URL', 'agents.example/events'],
    ['a user name', 'https://user@agents.example/'],
    ['a password', 'https://user:secret@agents.example/'],
    ['a public name as user name', 'https://agents.example@127.0.0.1/'],
    ['a fragment', 'https://agents.example/#events'],
    ['another port', 'https://agents.example:8443/'],
    ['port 22', 'https://agents.example:22/'],
    ['more than 2,048 characters', `https://agents.example/${'a'.repeat(2_048)}`],
    ['loopback', 'https://127.0.0.1/'],
    ['another loopback', 'https://127.1.2.3/'],
    ['short loopback', 'https://127.1/'],
    ['octal loopback', 'https://0177.0.0.1/'],
    ['hexadecimal loopback', 'https://0x7f.0.0.1/'],
    ['loopback as one integer', 'https://2130706433/'],
    ['loopback as one hexadecimal integer', 'https://0x7f000001/'],
    ['loopback with a final dot', 'https://127.0.0.1./'],
    ['loopback in full-width digits', 'https://１２７.０.０.１/'],
    ['the unspecified address', 'https://0.0.0.0/'],
    ['a private address, 10/8', 'https://10.1.2.3/'],
    ['a private address, 172.16/12', 'https://172.31.255.1/'],
    ['a private address, 192.168/16', 'https://192.168.1.1/'],
    ['link-local metadata', 'https://169.254.169.254/latest/meta-data/'],
    ['shared addresses (CGNAT)', 'https://100.64.0.1/'],
    ['benchmarking addresses', 'https://198.18.0.1/'],
    ['protocol assignments', 'https://192.0.0.170/'],
    ['documentation addresses', 'https://203.0.113.5/'],
    ['multicast', 'https://224.0.0.1/'],
    ['reserved addresses', 'https://240.0.0.1/'],
    ['broadcast', 'https://255.255.255.255/'],
    ['IPv6 loopback', 'https://[::1]/'],
    ['IPv6 unspecified', 'https://[::]/'],
    ['IPv4-mapped loopback', 'https://[::ffff:127.0.0.1]/'],
    ['IPv4-mapped loopback in hexadecimal', 'https://[::ffff:7f00:1]/'],
    ['IPv4-compatible loopback', 'https://[::127.0.0.1]/'],
    ['unique local IPv6', 'https://[fd00:ec2::254]/'],
    ['link-local IPv6', 'https://[fe80::1]/'],
    ['site-local IPv6', 'https://[fec0::1]/'],
    ['IPv6 multicast', 'https://[ff02::1]/'],
    ['NAT64 of loopback', 'https://[64:ff9b::7f00:1]/'],
    ['6to4 of loopback', 'https://[2002:7f00:1::]/'],
    ['Teredo', 'https://[2001::1]/'],
    ['IPv6 documentation', 'https://[2001:db8::1]/'],
    ['unassigned IPv6', 'https://[4000::1]/'],
    ['localhost', 'https://localhost/'],
    ['localhost with a final dot', 'https://localhost./'],
    ['LOCALHOST', 'https://LOCALHOST/'],
    ['a name below localhost', 'https://a.localhost/'],
    ['a name without a dot', 'https://router/'],
    ['a cloud metadata name', 'https://metadata.google.internal/'],
    ['a multicast DNS name', 'https://printer.local/'],
    ['the service itself', 'https://api.agents.example/agents/1/webhooks'],
  ])('a target is refused: %s', (_, url) => {
    expect(checkTarget(url, rules)).toEqual({ kind: 'refused', problem: expect.stringMatching(/\w/) })
  })

  it('a target may be local and without TLS where the deployment allows it', () => {
    const local = { ...rules, allowsLocalTargets: true }
    expect(checkTarget('http://127.0.0.1:8080/events', local)).toMatchObject({ kind: 'accepted' })
    expect(checkTarget('http://user@127.0.0.1:8080/events', local)).toMatchObject({ kind: 'refused' })
  })
})

describe('the host of a target', () => {
  /** Addresses by name; 4 and 6 are the record types A and AAAA. */
  const zone: Record<string, { 1?: string[]; 28?: string[] }> = {
    'public.example': { 1: ['93.184.216.34'], 28: ['2606:2800:220:1:248:1893:25c8:1946'] },
    'mixed.example': { 1: ['93.184.216.34', '10.0.0.1'] },
    'six.example': { 1: ['93.184.216.34'], 28: ['::ffff:169.254.169.254'] },
    'empty.example': {},
  }
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://resolver')
    const [name = '', type] = [searchParams.get('name') ?? '', Number(searchParams.get('type')) as 1 | 28]
    if (name === 'broken.example') return response.writeHead(500).end()
    if (name === 'failing.example') return response.end(JSON.stringify({ Status: 2 }))
    const records = zone[name]
    const alias = { name, type: 5, data: 'alias.example.' }
    const answers = (records?.[type] ?? []).map(data => ({ name, type, data }))
    return response.end(JSON.stringify({ Status: records ? 0 : 3, Answer: [alias, ...answers] }))
  })
  let resolver: string
  beforeAll(async () => {
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
    resolver = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dns-query`
  })
  afterAll(() => void server.close())

  it.each([
    ['public.example', 'public'],
    ['mixed.example', 'refused'],
    ['six.example', 'refused'],
    ['empty.example', 'refused'],
    ['absent.example', 'refused'],
    ['broken.example', 'unknown'],
    ['failing.example', 'unknown'],
  ])('the host of a target %s is %s', async (host, kind) => {
    expect((await checkHost(host, resolver)).kind).toBe(kind)
  })

  it('the host of a target is unknown while the resolver is down', async () => {
    expect(await checkHost('public.example', 'http://127.0.0.1:1/dns-query')).toEqual({ kind: 'unknown' })
  })
})

describe('a signature', () => {
  const body = JSON.stringify({ type: 'trade', timestamp: '2026-01-05T12:00:00.000Z', data: { n: 'é' } })
  const timestamp = Math.floor(Date.now() / 1000)
  const headersOf = async (secrets: string[]) => ({
    'webhook-id': '12-3.1',
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': await signDelivery(secrets, { id: '12-3.1', timestamp, body }),
  })

  it('a signature is verified by the library of the standard, with either secret of a rotation', async () => {
    const [secret, previous, other] = [createSecret(), createSecret(), createSecret()]
    const headers = await headersOf([secret, previous])
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    for (const known of [secret, previous]) expect(new Webhook(known).verify(body, headers)).toEqual(JSON.parse(body))
    expect(() => new Webhook(other).verify(body, headers)).toThrow()
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow()
    expect(() => new Webhook(secret).verify(body, { ...headers, 'webhook-id': '12-3' })).toThrow()
  })
})

describe('the wait before a retry', () => {
  it('the wait before a retry is a random part of a ceiling that doubles from five seconds to an hour', () => {
    const ceilings = Array.from({ length: 12 }, (_, index) => retryDelayMs(index + 1, 1) / 1000)
    expect(ceilings).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600])
    expect([retryDelayMs(5, 0.5), retryDelayMs(5, 0), retryDelayMs(60, 0.25)]).toEqual([40_000, 1_000, 900_000])
  })

  it('the wait before a retry is at least what Retry-After says, in seconds or as a date, up to an hour', () => {
    const now = Date.parse('2026-01-05T12:00:00Z')
    const parse = (header: string | null) => parseRetryAfter(header, now)
    expect(
      ['120', 'Mon, 05 Jan 2026 12:01:00 GMT', 'Mon, 05 Jan 2026 11:00:00 GMT', 'soon', '-1', null].map(parse),
    ).toEqual([120_000, 60_000, 0, 0, 0, 0])
    expect([retryDelayMs(1, 0, 120_000), retryDelayMs(1, 1, 2_000), retryDelayMs(1, 0, 1e9)]).toEqual([
      120_000,
      5_000,
      MAX_RETRY_DELAY_MS,
    ])
  })
})
