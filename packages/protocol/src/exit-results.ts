import { type Address, type Hex, isAddressEqual } from 'viem'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { decodeEvent } from './decode-event.ts'

/**
 * An executed exit: the index in the ladder of the rule that fired, and the USDC base units that the vault received. The
 * sale of a position that the agent's owner closes has no rule.
 */
export type ExecutedExit = { ruleIndex: number | undefined; usdcOut: bigint }

/** What a mined transaction did with the exit of a position. `tokensLeft` stay due, in the token's base units. */
export type ExitResult =
  | ({ kind: 'executed' } & ExecutedExit)
  | ({ kind: 'partlyExecuted'; tokensLeft: bigint } & ExecutedExit)
  /** Nothing was sold; the router recorded that the exit is due. */
  | { kind: 'deferred' }

type RouterLog = { topics: readonly Hex[]; data: Hex }

/** Returns the completed exit of a router log, or undefined if it is another event. */
export function decodeExit(log: RouterLog): (ExecutedExit & { positionId: bigint; keeper: Address }) | undefined {
  const { eventName, args } = decodeEvent(tradeRouterAbi, log)
  if (eventName === 'ExitExecuted') {
    const { positionId, keeper, ruleIndex, usdcOut } = args
    return { positionId, keeper, ruleIndex, usdcOut }
  }
  if (eventName !== 'OwnerCloseExecuted' || args.tokensLeft > 0n) return undefined
  const { positionId, keeper, usdcOut } = args
  return { positionId, keeper, ruleIndex: undefined, usdcOut }
}

/** Returns what the logs of a mined transaction say about exits, by position id. */
export function exitResults(
  router: Address,
  logs: readonly (RouterLog & { address: Address })[],
): Map<bigint, ExitResult> {
  const results = new Map<bigint, ExitResult>()
  for (const log of logs) {
    if (!isAddressEqual(log.address, router)) continue
    const { eventName, args } = decodeEvent(tradeRouterAbi, log)
    if (eventName === 'ExitExecuted')
      results.set(args.positionId, { kind: 'executed', ruleIndex: args.ruleIndex, usdcOut: args.usdcOut })
    if (eventName === 'ExitPartlyExecuted')
      results.set(args.positionId, {
        kind: 'partlyExecuted',
        ruleIndex: args.ruleIndex,
        usdcOut: args.usdcOut,
        tokensLeft: args.tokensLeft,
      })
    if (eventName === 'OwnerCloseExecuted') {
      const sale = { ruleIndex: undefined, usdcOut: args.usdcOut }
      const { tokensLeft } = args
      results.set(
        args.positionId,
        tokensLeft === 0n ? { kind: 'executed', ...sale } : { kind: 'partlyExecuted', tokensLeft, ...sale },
      )
    }
    if (eventName === 'ExitDeferred') results.set(args.positionId, { kind: 'deferred' })
  }
  return results
}
