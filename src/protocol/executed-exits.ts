import { type Address, type Hex, isAddressEqual } from 'viem'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { decodeEvent } from './decode-event.ts'

/** An executed exit: the index in the ladder of the rule that fired, and the USDC base units that the vault received. */
export type ExecutedExit = { ruleIndex: number; usdcOut: bigint }

type RouterLog = { topics: readonly Hex[]; data: Hex }

/** Returns the exit of a router log, or undefined if it is another event. */
export function decodeExit(log: RouterLog): (ExecutedExit & { positionId: bigint; keeper: Address }) | undefined {
  const event = decodeEvent(tradeRouterAbi, log)
  if (event.eventName !== 'ExitExecuted') return undefined
  const { positionId, keeper, ruleIndex, usdcOut } = event.args
  return { positionId, keeper, ruleIndex, usdcOut }
}

/** Returns the exits in the logs of a mined transaction, by position id. */
export function executedExits(
  router: Address,
  logs: readonly (RouterLog & { address: Address })[],
): Map<bigint, ExecutedExit> {
  const exits = new Map<bigint, ExecutedExit>()
  for (const log of logs) {
    const exit = isAddressEqual(log.address, router) ? decodeExit(log) : undefined
    if (exit) exits.set(exit.positionId, { ruleIndex: exit.ruleIndex, usdcOut: exit.usdcOut })
  }
  return exits
}
