import { expect, it } from 'vitest'
import { createLogRangeSize, isOverload, parseBlockLimit } from '../../src/rpc/log-range-size.ts'

// Errors of eth_getLogs, as providers document or send them.
it.each([
  ['Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range.', 10],
  [
    'Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]',
    0xd043b9,
  ],
  ['Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range', 2_000],
  ['query returned more than 10000 results. Try with this block range [0xBDE5F8, 0xBDE6F7].', 256],
  ['query exceeds max results 20000, retry with the range 23879634-23879696', 63],
  ['query exceeds max block range 100000', 100_000],
  ['eth_getLogs range is too large, max is 1k blocks', 1_000],
  ['ranges over 10000 blocks are not supported on freetier', 10_000],
  ['eth_getLogs is limited to 1024 block range. Please check the parameter requirements', 1_024],
  ['eth_getLogs is limited to a 10,000 range', 10_000],
  ['exceed maximum block range: 50000', 50_000],
  ['block range is too wide, maximum allowed is 800', 800],
  ['Block range limit exceeded. Maximum allowed range is 100 blocks', 100],
  ['requested too many blocks from 1 to 9999, maximum is set to 2048', 2_048],
  ['eth_getLogs and eth_newFilter are limited to a 5 blocks range', 5],
  ['logs matched by query exceeds limit of 10000', undefined],
  ['query returned more than 10000 results', undefined],
  ['query timeout exceeded', undefined],
  ['response size should not greater than 10000000 bytes', undefined],
])('the error "%s" allows %s blocks', (message, blocks) => {
  expect(parseBlockLimit(message)).toBe(blocks)
  expect(isOverload(message)).toBe(false)
})

it.each([
  'rate limit exceeded',
  'Too Many Requests',
  'Your app has exceeded its compute units per second capacity',
  'daily request count exceeded, request rate limited',
  'Too many request, try again later',
  "You've exceeded the RPS limit available on the current plan.",
])('the error "%s" is an overload', message => {
  expect(isOverload(message)).toBe(true)
})

it('a rejected size is not tried again until many ranges have been accepted', () => {
  const size = createLogRangeSize()
  expect(size.blocks()).toBe(2_000)
  expect(size.reject(2_000, 'no')).toBe(true)
  expect(size.blocks()).toBe(1_000)
  size.accept(1_000, 10)
  expect(size.blocks()).toBe(1_999)
  for (let time = 0; time < 60; time++) size.accept(size.blocks(), 10)
  expect(size.blocks()).toBeGreaterThan(2_000)
})

it('a limit in the error is followed, and a single block cannot shrink', () => {
  const size = createLogRangeSize()
  expect(size.reject(2_000, 'limited to 10 block range')).toBe(true)
  expect(size.blocks()).toBe(10)
  for (const blocks of [10, 5, 2]) expect(size.reject(blocks, 'query timeout exceeded')).toBe(true)
  expect(size.reject(1, 'query timeout exceeded')).toBe(false)
  expect(size.blocks()).toBe(1)
})

it('many logs shrink the range, and a range below the full size does not grow it', () => {
  const size = createLogRangeSize()
  size.accept(3, 0)
  expect(size.blocks()).toBe(2_000)
  size.accept(2_000, 50_000)
  expect(size.blocks()).toBe(1_000)
})
