import { expect, it } from 'vitest'
import { formatBps, formatUsd, formatUsdcExactly, parseAmount } from '../../web/src/format/amounts.ts'

it('takes a comma in an amount only as a separator of thousands', () => {
  expect(['1,250.5', '1,234,567', '12'].map(text => parseAmount(text))).toEqual([
    1_250_500_000n,
    1_234_567_000_000n,
    12_000_000n,
  ])
  expect(['1,5', '1,50', '12,34.5', '1,2345', ',500', '1.5,000'].map(text => parseAmount(text))).toEqual(
    Array(6).fill(undefined),
  )
})

it('shows amounts that someone approves with every digit', () => {
  expect(['1000000', '1234500', '999999', '1', '1234567890123'].map(formatUsdcExactly)).toEqual([
    '1.00',
    '1.2345',
    '0.999999',
    '0.000001',
    '1,234,567.890123',
  ])
})

it('cuts a percentage at every number of decimals, and never rounds it up to a limit or to a loss', () => {
  const shown = (bps: number, fraction?: number) => formatBps(bps, fraction).replace('\u00a0', ' ')
  expect([50, 50.99, -50.99, 9_999.9, -0.4, 123_456.7].map(bps => shown(bps))).toEqual([
    '0.50 %',
    '0.50 %',
    '−0.50 %',
    '99.99 %',
    '0.00 %',
    '1,234.56 %',
  ])
  expect([9_999, -59, -9].map(bps => shown(bps, 1))).toEqual(['99.9 %', '−0.5 %', '0.0 %'])
  expect([9_999, -59].map(bps => shown(bps, 0))).toEqual(['99 %', '0 %'])
})

it('never shows the price of a cheap token as zero', () => {
  expect(['0.00000012', '9.5e-7', '0.0042', '0.5', '118.25', '-0.00000012', '0'].map(formatUsd)).toEqual([
    '0.00000012',
    '0.00000095',
    '0.004200',
    '0.500000',
    '118.25',
    '−0.00000012',
    '0.00',
  ])
})
