import { ONE_SHARE } from '@agent-trading-service/protocol/price-basis'
import {
  decodeTokenDescription,
  type EncodedTokenDescription,
  PLAIN_TOKEN,
  type TokenDescription,
} from '@agent-trading-service/protocol/token-description'
import { type Address, parseAbi } from 'viem'
import type { Chain } from './configured-chain.ts'
import { tokenRegistry } from './contracts.ts'
import { call, optional } from './read-tree.ts'

/** What a stock token says about its multiplier (ERC-8056), and a wrapper of a rebasing token about its rate. */
export const multiplierAbi = parseAbi([
  'function uiMultiplier() view returns (uint256)',
  'function newUIMultiplier() view returns (uint256)',
  'function effectiveAt() view returns (uint256)',
  'function convertToAssets(uint256 shares) view returns (uint256)',
])

/**
 * How many shares one token stands for, with 18 decimals: now, and after a change that is announced. `changedAt` is
 * when the last change took effect, in Unix seconds; 0 if none is known.
 */
export type TokenMultiplier = {
  multiplier: bigint
  pending: { multiplier: bigint; effectiveAt: bigint } | undefined
  changedAt: bigint
}

/** A token's description with its multiplier, both as of a block. */
export type TokenFacts = TokenDescription & TokenMultiplier

/** The calls that read a token's facts. A token lacks most of them. */
export const tokenFactCalls = (chain: Chain, address: Address) => ({
  description: optional(call(tokenRegistry(chain), 'descriptionOf', [address])),
  current: optional(call({ address, abi: multiplierAbi }, 'uiMultiplier', [])),
  next: optional(call({ address, abi: multiplierAbi }, 'newUIMultiplier', [])),
  effectiveAt: effectiveAtCall(address),
  rate: optional(call({ address, abi: multiplierAbi }, 'convertToAssets', [ONE_SHARE])),
})

/** The calls that read the multipliers of all known tokens, where it is not known which one a read is about. */
export const multiplierCalls = ({ tokens, memory }: Chain) =>
  (memory.registryEntries?.tokens ?? Object.values(tokens)).map(address => ({
    address,
    multiplier: optional(call({ address, abi: multiplierAbi }, 'uiMultiplier', [])),
  }))

/** The call that reads when a token's multiplier changes or has changed; undefined for a token without one. */
export const effectiveAtCall = (address: Address) => optional(call({ address, abi: multiplierAbi }, 'effectiveAt', []))

type TokenFactValues = {
  description: EncodedTokenDescription | undefined
  current: bigint | undefined
  next: bigint | undefined
  effectiveAt: bigint | undefined
  rate?: bigint | undefined
}

/**
 * Returns a token's facts at a time in Unix seconds. The token's own word counts more than its description: one that
 * was never described and answers `uiMultiplier()` is scaled. A wrapper stands for what its shares convert to.
 */
export function toTokenFacts(
  { description, current = 0n, next = 0n, effectiveAt = 0n, rate = 0n }: TokenFactValues,
  at: bigint,
): TokenFacts {
  const described = description ? decodeTokenDescription(description) : PLAIN_TOKEN
  if (described.kind === 'wrapper' || current === 0n)
    return {
      ...described,
      multiplier: described.kind === 'wrapper' && rate > 0n ? rate : ONE_SHARE,
      pending: undefined,
      changedAt: 0n,
    }
  // Both views keep a change that has passed: only a later time makes it pending.
  const isPending = effectiveAt > at && next > 0n && next !== current
  return {
    ...described,
    kind: 'scaledUI',
    multiplier: current,
    pending: isPending ? { multiplier: next, effectiveAt } : undefined,
    changedAt: effectiveAt <= at ? effectiveAt : 0n,
  }
}
