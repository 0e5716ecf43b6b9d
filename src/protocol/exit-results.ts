import { type Address, type Hex, isAddressEqual } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { decodeEvent } from './decode-event.ts'

/** An executed exit: the index in the ladder of the rule that fired, and the USDC base units that the vault received. */
export type ExecutedExit = { ruleIndex: number; usdcOut: bigint }

/** What a mined transaction did with the exit of a position. `tokensLeft` stay due, in the token's base units. */
export type ExitResult =
  | ({ kind: 'executed' } & ExecutedExit)
  | ({ kind: 'partlyExecuted'; tokensLeft: bigint } & ExecutedExit)
  /** Nothing was sold; the router recorded that the exit is due. */
  | { kind: 'deferred' }

type RouterLog = { topics: readonly Hex[]; data: Hex }

/** Returns the exit of a router log, or undefined if it is another event. */
export function decodeExit(log: RouterLog): (ExecutedExit & { positionId: bigint; keeper: Address }) | undefined {
  const event = decodeEvent(tradeRouterAbi, log)
  if (event.eventName !== 'ExitExecuted') return undefined
  const { positionId, keeper, ruleIndex, usdcOut } = event.args
  return { positionId, keeper, ruleIndex, usdcOut }
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
    if (eventName === 'ExitDeferred') results.set(args.positionId, { kind: 'deferred' })
  }
  return results
}
