import { expect, it } from 'vitest'
import { feeOf } from '../../packages/cli/src/trading/fee-payer.ts'

const ADDRESS = `0x${'ab'.repeat(20)}`
const requirements = {
  amount: '1000000',
  network: 'eip155:31337',
  asset: ADDRESS,
  payTo: ADDRESS,
  maxTimeoutSeconds: 300,
}
const quoteWith = (lie: object) =>
  ({
    x402: { enabled: true, requirements: { ...requirements, ...lie } },
    registrationFee: {},
  }) as unknown as Parameters<typeof feeOf>[0]

it('a fee names addresses and a chain, so that no text of a service stands before what is paid', () => {
  expect(feeOf(quoteWith({}), '5')).toMatchObject({
    amount: 1_000_000n,
    payTo: expect.stringMatching(new RegExp(ADDRESS, 'i')),
  })
  for (const lie of [
    { payTo: `you, for 0 USDC${' '.repeat(550)}` },
    { asset: 'USDC' },
    { network: 'eip155:1 for 0 USDC' },
    { amount: '1e3' },
    { amount: '-1' },
    { maxTimeoutSeconds: 'soon' },
  ])
    expect(() => feeOf(quoteWith(lie), '5'), JSON.stringify(lie)).toThrow(
      expect.objectContaining({ kind: 'mismatch', facts: expect.objectContaining({ code: 'FEE_MISMATCH' }) }),
    )
})
