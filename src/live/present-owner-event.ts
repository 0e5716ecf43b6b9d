import { zeroAddress } from 'viem'
import type { ContractEvent } from '../history/tables/events.ts'
import { modeName } from '../resources/mandate.ts'

const nullIfZero = (digits: unknown) => (digits === '0' ? null : digits)

type Place = Pick<ContractEvent, 'transactionHash' | 'block' | 'logIndex' | 'timestamp'>

/** Presents where an event is on the chain. */
export const presentPlace = ({ transactionHash, block, logIndex, timestamp }: Place) => ({
  id: `${transactionHash}-${logIndex}`,
  transactionHash,
  blockNumber: `${block}`,
  logIndex,
  timestamp: `${timestamp}`,
})

/**
 * Presents an event of an agent's owner as event streams and the list of an owner's messages show it. Limits that are
 * not set are null; integers are digits, amounts in USDC base units.
 */
export const presentOwnerEvent = (event: ContractEvent): Record<string, unknown> => ({
  type: event.name,
  ...(event.args.owner !== undefined && { owner: event.args.owner }),
  ...factsOf(event),
  ...presentPlace(event),
})

function factsOf({ name, args }: ContractEvent): Record<string, unknown> {
  switch (name) {
    case 'MandateUpdated':
      return { mandate: presentMandate(args.mandate as Record<string, unknown>) }
    case 'BuyingStopped':
      return { mode: modeName(Number(args.mode)) }
    case 'CloseAllStarted':
      return { mode: modeName(Number(args.mode)), closingSince: args.closingSince }
    case 'OwnershipOffered':
      return { from: args.from, to: args.to === zeroAddress ? null : args.to }
    case 'AgentOwnershipTransferred':
      return { from: args.from, to: args.to }
    case 'AgentSignerUpdated':
      return { signer: args.signer }
    case 'IntentsCancelled':
      return { fromNonce: args.fromNonce, untilNonce: args.untilNonce }
    default:
      return {}
  }
}

function presentMandate(mandate: Record<string, unknown>): Record<string, unknown> {
  const tokens = mandate.allowedTokens as unknown[]
  return {
    mode: modeName(Number(mandate.mode)),
    maxTradeUsdc: nullIfZero(mandate.maxTradeUsdc),
    maxDailyTurnoverUsdc: nullIfZero(mandate.maxDailyTurnoverUsdc),
    maxExposureUsdc: nullIfZero(mandate.maxExposureUsdc),
    allowedTokens: tokens.length === 0 ? null : tokens,
    validUntil: nullIfZero(mandate.validUntil),
  }
}
