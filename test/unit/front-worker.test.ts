import { expect, it } from 'vitest'
import { clientAddress } from '../../scripts/front-worker.ts'

it('without trusted proxies the client is the other end of the connection, whatever it claims', () => {
  expect(clientAddress('192.0.2.1:5000', '203.0.113.9', 0)).toBe('192.0.2.1')
  expect(clientAddress('[2001:db8::1]:5000', '', 0)).toBe('2001:db8::1')
  expect(clientAddress('', '203.0.113.9', 0)).toBe('unknown')
})

it('behind trusted proxies the client is what the outermost of them appended, not what a client wrote before', () => {
  expect(clientAddress('127.0.0.1:5000', '198.51.100.7', 1)).toBe('198.51.100.7')
  expect(clientAddress('127.0.0.1:5000', '203.0.113.9, 198.51.100.7', 1)).toBe('198.51.100.7')
  expect(clientAddress('127.0.0.1:5000', '203.0.113.9, 198.51.100.7, 10.0.0.2', 2)).toBe('198.51.100.7')
  expect(clientAddress('127.0.0.1:5000', '[2001:db8::7]:443', 1)).toBe('2001:db8::7')
})

it('a request that did not pass the trusted proxies is that of the other end', () => {
  expect(clientAddress('192.0.2.1:5000', '', 1)).toBe('192.0.2.1')
  expect(clientAddress('192.0.2.1:5000', '203.0.113.9', 2)).toBe('192.0.2.1')
})
