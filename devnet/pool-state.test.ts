import { type Hex, numberToHex } from 'viem'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ACCOUNTS, devnetAccounts } from './accounts.ts'
import { type Anvil, rpc, startAnvil } from './anvil.ts'
import { swapTo } from './market-maker.ts'
import { readPoolStates, sqrtRatioAt, swappedTo, tickAt } from './pool-state.ts'
import { type Seeded, seed } from './seed.ts'
import { connect } from './sender.ts'
import { sqrtPriceX96 } from './uniswap.ts'

const START = 1_900_000_000
let anvil: Anvil
let seeded: Seeded
beforeAll(async () => {
  anvil = await startAnvil({ accounts: ACCOUNTS, startsAt: START, mines: false })
  seeded = await seed(connect(anvil.rpcUrl, anvil.chainId), devnetAccounts())
}, 120_000)
afterAll(() => anvil.stop())

const read = (slots: readonly { address: Hex; slot: bigint }[]) =>
  Promise.all(
    slots.map(({ address, slot }) =>
      rpc<Hex>(anvil.rpcUrl, 'eth_getStorageAt', [address, numberToHex(slot), 'latest']).then(BigInt),
    ),
  )

it('a pool that is moved by writing its state has the price, the tick and the averages that a swap leaves', async () => {
  const { markets, contracts } = seeded
  const { marketMaker } = devnetAccounts()
  let timestamp = START + 86_400
  // Both orders of a pool's tokens, moves within a tick and over many, more of them than the pool keeps averages of.
  for (const market of markets.slice(0, 4)) {
    let price = 18_025_000_000n
    for (let step = 0; step < 70; step++) {
      const percent = BigInt([1, -1, 250, -240, 3, 9_000, -4_000][step % 7] ?? 0)
      price += (price * percent) / 10_000n
      timestamp += [1, 300, 0, 86_400][step % 4] || 1
      const [state] = await readPoolStates([market.pool], read)
      if (state === undefined) throw new Error('There is no pool.')
      const target = sqrtPriceX96(market, price)
      const expected = swappedTo(market.pool, state, target, timestamp)
      await rpc(anvil.rpcUrl, 'evm_setNextBlockTimestamp', [timestamp])
      await rpc(anvil.rpcUrl, 'eth_sendTransaction', [
        {
          from: marketMaker.address,
          to: contracts.SwapRouter,
          data: swapTo(market, { current: state.sqrtPriceX96, target, recipient: marketMaker.address }),
          gas: numberToHex(20_000_000),
        },
      ])
      await rpc(anvil.rpcUrl, 'evm_mine', [])
      expect(await readPoolStates([market.pool], read)).toEqual([expected.state])
      expect(await read(expected.writes)).toEqual(expected.writes.map(({ value }) => value))
    }
  }
}, 120_000)

it('ticks and their ratios are those of TickMath at its bounds and at each power of two', () => {
  expect(sqrtRatioAt(-887_272)).toBe(4_295_128_739n)
  expect(sqrtRatioAt(887_272)).toBe(1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342n)
  expect(sqrtRatioAt(0)).toBe(2n ** 96n)
  for (let bit = 0; bit < 20; bit++)
    for (const tick of [2 ** bit, -(2 ** bit)].filter(each => Math.abs(each) < 887_272)) {
      expect(tickAt(sqrtRatioAt(tick))).toBe(tick)
      expect(tickAt(sqrtRatioAt(tick) - 1n)).toBe(tick - 1)
    }
})
