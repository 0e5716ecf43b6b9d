import { ONE_SHARE } from '@agent-trading-service/protocol/price-basis'
import {
  decodeTokenDescription,
  type EncodedTokenDescription,
  PLAIN_TOKEN,
  type TokenDescription,
} from '@agent-trading-service/protocol/token-description'
import { type Address, parseAbi } from 'viem'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import type { Chain } from './configured-chain.ts'
import { tokenRegistry } from './contracts.ts'
import { type CallResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { call, optional, untrusted } from './read-tree.ts'

/** What a stock token says about its multiplier (ERC-8056). */
export const multiplierAbi = parseAbi([
  'function uiMultiplier() view returns (uint256)',
  'function newUIMultiplier() view returns (uint256)',
  'function effectiveAt() view returns (uint256)',
])

/**
 * How many shares one token stands for, with 18 decimals: now, and after a change that is announced. `changedAt` is
 * when the last change took effect, in Unix seconds; 0 if none is known. `isKnown` is false for a token that should
 * say its multiplier and does not: then it counts as one share, and no price of a share may be converted with it.
 */
export type TokenMultiplier = {
  multiplier: bigint
  isKnown: boolean
  pending: { multiplier: bigint; effectiveAt: bigint } | undefined
  changedAt: bigint
}

/** A token's description with its multiplier, both as of a block. */
export type TokenFacts = TokenDescription & TokenMultiplier

/**
 * The calls that read a token's multiplier and when it changes, within a tree of calls. Our registry knows wrappers as
 * well; where it lacks the function, the token's own word counts.
 */
export const multiplierCalls = (chain: Chain, token: Address) => ({
  registered: optional(call(tokenRegistry(chain), 'multiplierOf', [token])),
  ...(!chain.memory.registryHasMultipliers && {
    own: untrusted(optional(call({ address: token, abi: multiplierAbi }, 'uiMultiplier', []))),
    ownEffectiveAt: untrusted(optional(call({ address: token, abi: multiplierAbi }, 'effectiveAt', []))),
  }),
})

type MultiplierValues = {
  registered: readonly [multiplier: bigint, effectiveAt: bigint] | undefined
  own?: bigint | undefined
  ownEffectiveAt?: bigint | undefined
}

/** Returns how many shares a token stands for (undefined if one) and when that changes or has changed (0 if never). */
export function multiplierIn({ registered, own = 0n, ownEffectiveAt = 0n }: MultiplierValues) {
  const [multiplier, effectiveAt] = registered ?? [own, ownEffectiveAt]
  return { multiplier: multiplier || undefined, effectiveAt }
}

/** Returns the same from the result of the service reader, which asks the registry first as well. */
export const decodeMultiplier = (result: CallResult, ownEffectiveAt?: bigint) =>
  multiplierIn({
    registered: tryDecodeResult(tokenRegistryAbi, 'multiplierOf', result),
    own: tryDecodeResult(multiplierAbi, 'uiMultiplier', result),
    ownEffectiveAt,
  })

export const descriptionCall = (chain: Chain, token: Address) =>
  optional(call(tokenRegistry(chain), 'descriptionOf', [token]))

/** Returns a token's description from its call; that of a plain token if the registry records none. */
export const descriptionFrom = (encoded: EncodedTokenDescription | undefined): TokenDescription =>
  encoded === undefined ? PLAIN_TOKEN : decodeTokenDescription(encoded)

/** The calls that read a token's facts. A token lacks most of them. */
export const tokenFactCalls = (chain: Chain, address: Address) => ({
  description: descriptionCall(chain, address),
  ...multiplierCalls(chain, address),
  next: untrusted(optional(call({ address, abi: multiplierAbi }, 'newUIMultiplier', []))),
})

/**
 * Returns a token's facts at a time in Unix seconds. The token's own word counts more than its description: one that
 * was never described and answers `uiMultiplier()` is scaled.
 */
export function toTokenFacts(
  {
    description,
    next = 0n,
    ...values
  }: MultiplierValues & { description: EncodedTokenDescription | undefined; next: bigint | undefined },
  at: bigint,
): TokenFacts {
  const described = descriptionFrom(description)
  const { multiplier, effectiveAt } = multiplierIn(values)
  if (multiplier === undefined)
    return {
      ...described,
      multiplier: ONE_SHARE,
      isKnown: described.kind === 'plain',
      pending: undefined,
      changedAt: 0n,
    }
  // Both views keep a change that has passed: only a later time makes it pending.
  const isPending = effectiveAt > at && next > 0n && next !== multiplier
  return {
    ...described,
    kind: described.kind === 'wrapper' ? 'wrapper' : 'scaledUI',
    multiplier,
    isKnown: true,
    pending: isPending ? { multiplier: next, effectiveAt } : undefined,
    changedAt: effectiveAt <= at ? effectiveAt : 0n,
  }
}
