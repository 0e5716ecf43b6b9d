import { expect, it } from 'vitest'
import { edit, fieldsOf, hasDropped, type stateOf } from '../../web/src/pages/owner/mandate-draft.ts'

type Control = Parameters<typeof stateOf>[0]
const OWNER = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'

/** The control of an agent that may trade 250.5 USDC at a time. */
const trading: Control = {
  agentId: '1',
  owner: OWNER,
  signer: OWNER,
  pendingOwner: null,
  ownerNonce: '4',
  intentNonce: '0',
  ownerControls: OWNER,
  mandate: {
    mode: 'trade',
    maxTradeUsdc: '250500000',
    maxDailyTurnoverUsdc: null,
    maxExposureUsdc: null,
    allowedTokens: null,
    validUntil: null,
    version: '1',
  },
  closingSince: null,
  openPositionIds: [],
  asOf: { blockNumber: '10', blockTimestamp: '100' },
}
const stopped: Control = { ...trading, ownerNonce: '5', mandate: { ...trading.mandate, mode: 'reduceOnly' } }

it('fills fields with the mandate on chain, as it is now, and with edits', () => {
  expect(fieldsOf(trading, undefined)).toMatchObject({ mode: 'trade', maxTradeUsdc: '250.5', maxExposureUsdc: '' })
  expect(fieldsOf(stopped, undefined).mode).toBe('reduceOnly')
  const draft = edit(trading, edit(trading, undefined, { maxTradeUsdc: '100' }), { maxExposureUsdc: '900' })
  const later = { ...trading, intentNonce: '7', asOf: { blockNumber: '11', blockTimestamp: '101' } }
  expect(fieldsOf(later, draft)).toMatchObject({ mode: 'trade', maxTradeUsdc: '100', maxExposureUsdc: '900' })
  expect(hasDropped(later, draft)).toBe(false)
})

it('drops edits from before a stop, also from before one that left the mandate as it was', () => {
  const draft = edit(trading, undefined, { maxTradeUsdc: '100' })
  expect(fieldsOf(stopped, draft)).toEqual(fieldsOf(stopped, undefined))
  expect(hasDropped(stopped, draft)).toBe(true)
  const resume = edit(stopped, undefined, { mode: 'trade' })
  const stoppedAgain = { ...stopped, ownerNonce: '6' }
  expect(fieldsOf(stoppedAgain, resume).mode).toBe('reduceOnly')
  expect(hasDropped(stoppedAgain, resume)).toBe(true)
  expect(edit(stoppedAgain, resume, { maxTradeUsdc: '50' }).edits).toEqual({ maxTradeUsdc: '50' })
})

it('reports no dropped edits once they are on chain', () => {
  const draft = edit(stopped, undefined, { maxTradeUsdc: '100' })
  const set = { ...stopped, ownerNonce: '6', mandate: { ...stopped.mandate, maxTradeUsdc: '100000000', version: '2' } }
  expect(hasDropped(set, draft)).toBe(false)
})

it('does not take an unknown mode for one that lets the agent buy', () => {
  const unknown = { ...trading, mandate: { ...trading.mandate, mode: 'later' } }
  expect(fieldsOf(unknown, undefined).mode).toBe('stopped')
})
