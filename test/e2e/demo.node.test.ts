import { expect, inject, it } from 'vitest'
import { runDemo } from './run-demo.ts'

// `npm run test:slow` adds the embedded chain's own id.
it.each([inject('isFull') ? 31337 : 46630])(
  'the demo agent proves itself on paper, is promoted and trades real capital on chain %d',
  async chainId => {
    const { stdout } = await runDemo(chainId)
    const inOrder = [
      `(chain id ${chainId})`,
      'paid over x402',
      'CHALLENGE track: allocation 10000 USDC, capitalMode Simulated',
      'position 1, capitalMode Simulated',
      'not yet promoted: TooFewTrades',
      'the vault is as before: 1000000 USDC, of which 1000000 USDC idle',
      'promotionReadiness: 4 of 4 trades',
      'eligible true',
      'a stranger promotes the agent, in block',
      'FUNDED track: allocation 50000 USDC, capitalMode Real',
      'position 2, capitalMode Real',
      'the vault now holds',
      'the keeper fires the stop-loss',
      'tools at',
      'AAPL: ',
      'every step as expected.',
    ]
    expect(inOrder.filter(text => !stdout.includes(text))).toEqual([])
    expect(inOrder.toSorted((a, b) => stdout.indexOf(a) - stdout.indexOf(b))).toEqual(inOrder)
  },
)
