import { zeroAddress } from 'viem'
import type { ContractEvent } from '../history/tables/events.ts'
import { modeName } from '../resources/mandate.ts'

const nullIfZero = (digits: unknown) => (digits === '0' ? null : digits)

/**
 * Presents an event of an agent's owner as event streams show it. Limits that are not set are null; integers are digits,
 * amounts in USDC base units.
 */
export function presentOwnerEvent(event: ContractEvent): Record<string, unknown> {
  const { name, args, transactionHash, block, logIndex, timestamp } = event
  return {
    id: `${transactionHash}-${logIndex}`,
    type: name,
    ...(args.owner !== undefined && { owner: args.owner }),
    ...factsOf(event),
    transactionHash,
    blockNumber: `${block}`,
    logIndex,
    timestamp: `${timestamp}`,
  }
}

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
