import { selectPosts } from '@agent-trading-service/protocol/oracle-price'
import type { Address } from 'viem'
import { expect, it } from 'vitest'

const [REGISTRY, FIRST, SECOND] = ['0xa', '0xb', '0xc'] as Address[] as [Address, Address, Address]
const event = (block: number, contract: Address, name: string, args: Record<string, unknown> = {}) => ({
  block,
  contract,
  name,
  args,
})
const naming = (block: number, current: Address) => event(block, REGISTRY, 'PriceOracleUpdated', { current })
const post = (block: number, oracle: Address) => event(block, oracle, 'PriceUpdated')
const inheritance = (block: number, oracle: Address) => event(block, oracle, 'PriceInherited')
const blocksOf = (events: ReturnType<typeof event>[]) =>
  selectPosts(events, FIRST).map(({ block, name }) => [block, name])

it('posts count from the block in which the token registry names their oracle until it names another one', () => {
  expect(
    blocksOf([post(1, FIRST), post(2, SECOND), naming(3, SECOND), post(4, FIRST), post(5, SECOND), naming(6, FIRST)]),
  ).toEqual([
    [1, 'PriceUpdated'],
    [5, 'PriceUpdated'],
  ])
})

it('a forced price, which an oracle announces twice, is one post', () => {
  expect(blocksOf([post(1, FIRST), event(1, FIRST, 'PriceForced')])).toEqual([[1, 'PriceUpdated']])
})

it('prices that an oracle inherits count in the block that names it, not before', () => {
  expect(blocksOf([inheritance(1, SECOND), inheritance(2, SECOND), naming(2, SECOND), inheritance(3, SECOND)])).toEqual(
    [
      [2, 'PriceInherited'],
      [3, 'PriceInherited'],
    ],
  )
})
