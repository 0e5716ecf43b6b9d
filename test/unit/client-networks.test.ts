import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createRateLimits } from '../../src/limits/rate-limits.ts'
import { clientNetworksOf } from '../../src/requests/client-address.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const headersOf = (address: string) => new Headers({ 'cf-connecting-ip': address })
const createLimits = (changes: Partial<Parameters<typeof createRateLimits>[0]> = {}) => {
  const limits = createRateLimits({ address: 10, account: 10, maxParallel: 0, ...changes })
  return (address: string) => {
    const client = limits.ofClient(headersOf(address))
    if (client === undefined) throw new Error('There are no limits.')
    return client
  }
}

test('a client has its IPv4 address, or the /64, /56 and /48 of its IPv6 address', () => {
  expect(clientNetworksOf(headersOf('192.0.2.1'))).toEqual(['192.0.2.1'])
  expect(clientNetworksOf(headersOf('2001:db8:1:1f2f:0:0:0:1'))).toEqual([
    '2001:db8:1:1f2f',
    '2001:db8:1:1f00/56',
    '2001:db8:1/48',
  ])
  expect(clientNetworksOf(headersOf('2001:DB8::1'))).toEqual(['2001:db8:0:0', '2001:db8:0:0/56', '2001:db8:0/48'])
  expect(clientNetworksOf(new Headers())).toEqual(['unknown'])
})

test('an IPv4 address that a proxy with one socket for both protocols names as IPv6 is that IPv4 address', () => {
  for (const mapped of ['::ffff:192.0.2.1', '::FFFF:c000:201', '0:0:0:0:0:ffff:192.0.2.1'])
    expect(clientNetworksOf(headersOf(mapped))).toEqual(['192.0.2.1'])
})

test('a /56 has four budgets and a /48 sixteen, however many narrower networks a client sends from', async () => {
  const at = createLimits({ address: 3 })
  const passed = async (addresses: string[]) => {
    let count = 0
    for (const address of addresses) if (!(await at(address).count('reads'))?.exceeded) count++
    return count
  }
  const range = (count: number, address: (index: number) => string) =>
    Array.from({ length: count }, (_, i) => address(i))
  expect(await passed(range(20, () => '2001:db8:1:1::1'))).toBe(3)
  expect(await passed(range(200, index => `2001:db8:2:${index.toString(16)}::1`))).toBe(12)
  expect(await passed(range(2_000, index => `2001:db8:3:${(index * 32).toString(16)}::1`))).toBe(48)
  expect(await passed(range(20, () => '2001:db8:4:1::1'))).toBe(3)
})

test('a request costs its units', async () => {
  const client = createLimits()('192.0.2.1')
  expect(await client.count('reads', { units: 7 })).toMatchObject({ remaining: 3 })
  expect(await client.count('reads', { units: 7 })).toMatchObject({ exceeded: { requests: 10 } })
  expect(await client.count('reads', { units: 3 })).toMatchObject({ remaining: 0 })
})

test('a digest adds to the budget of one address, once, and an account to those of three addresses', async () => {
  const at = createLimits()
  const quotaAt = async (address: string) => (await at(address).count('reads'))?.quota
  at('192.0.2.1').raise('0xa', '0x01')
  expect(await quotaAt('192.0.2.1')).toBe(20)
  at('192.0.2.2').raise('0xa', '0x01')
  expect(await quotaAt('192.0.2.2')).toBe(10)
  for (const host of [2, 3, 4]) at(`192.0.2.${host}`).raise('0xa', `0x0${host}`)
  expect(await Promise.all([1, 2, 3, 4].map(host => quotaAt(`192.0.2.${host}`)))).toEqual([10, 20, 20, 20])
  at('192.0.2.2').raise('0xb', '0x05')
  expect(await quotaAt('192.0.2.2')).toBe(30)
  vi.advanceTimersByTime(600_001)
  expect(await quotaAt('192.0.2.2')).toBe(10)
})

test('accounts with several addresses cannot push out those with one', async () => {
  const at = createLimits()
  const quotaAt = async (address: string) => (await at(address).count('reads'))?.quota
  at('192.0.2.1').raise('0xhonest', '0xhonest')
  for (let index = 0; index < 12_000; index++)
    at(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`).raise(`0x${Math.floor(index / 3)}`, `0x${index}`)
  expect(await quotaAt('192.0.2.1')).toBe(20)
})

test('a signature adds to the wider networks of its address too', async () => {
  const at = createLimits()
  at('2001:db8:1:1::1').raise('0xa', '0x01')
  let passed = 0
  for (let read = 0; read < 30; read++) if (!(await at('2001:db8:1:1::2').count('reads'))?.exceeded) passed++
  expect(passed).toBe(20)
})

test('a reduction costs nothing once it was sent, and no other request uses its budget', async () => {
  const at = createLimits({ address: 8 })
  expect(await at('192.0.2.1').count('reads', { units: 8 })).toMatchObject({ remaining: 0 })
  const reduce = async (isSent: boolean) => {
    const client = at('192.0.2.1')
    const count = await client.count('reductions')
    if (isSent) client.takeBackReduction()
    return !count?.exceeded
  }
  for (let sent = 0; sent < 10; sent++) expect(await reduce(true)).toBe(true)
  expect([await reduce(false), await reduce(false), await reduce(false)]).toEqual([true, true, false])
})

test('the isolate searches for mistakes in signatures only if the client can pay for it, and not while a request waits', async () => {
  const at = createLimits({ address: 480, maxParallel: 2 }) // of which 160 at once, and a search costs 80
  expect([at('192.0.2.1'), at('192.0.2.1'), at('192.0.2.1')].map(client => client.maySearch())).toEqual([
    true,
    true,
    false,
  ])
  const [first, second] = [at('192.0.2.2'), at('192.0.2.2')]
  await first.enter()
  const entering = second.enter()
  expect(at('192.0.2.3').maySearch()).toBe(false)
  first.leave()
  await vi.advanceTimersByTimeAsync(20)
  await entering
  expect(at('192.0.2.3').maySearch()).toBe(true)
})

test('reductions take turns of their own, and wait for one like every request', async () => {
  const at = createLimits({ maxParallel: 2 })
  await at('192.0.2.1').enter()
  await at('192.0.2.1').enter('reduction')
  const refused = expect(at('192.0.2.1').enter('reduction')).rejects.toMatchObject({
    body: { code: 'RATE_LIMITED', details: { limit: 'parallel' } },
  })
  await vi.advanceTimersByTimeAsync(1_000)
  await refused
})

test('the /64s of a /48 share the slots of one client', async () => {
  const at = createLimits({ maxParallel: 4 })
  let entered = 0
  for (let index = 0; index < 8; index++)
    void at(`2001:db8:1:${index}::1`)
      .enter()
      .then(
        () => entered++,
        () => {},
      )
  await vi.advanceTimersByTimeAsync(100)
  expect(entered).toBe(2)
  await vi.advanceTimersByTimeAsync(1_000)
})
