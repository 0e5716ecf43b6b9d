import { type Address, type Hex, isAddressEqual } from 'viem'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { decodeEvent } from './decode-event.ts'
import { type ContractError, decodeRevert } from './decode-revert.ts'

/**
 * An executed exit: the index in the ladder of the rule that fired, and the USDC base units that the vault received.
 * The sale of a position that the agent's owner closes has no rule.
 */
type ExecutedExit = { ruleIndex: number | undefined; usdcOut: bigint }

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

// In the order of ITradeRouter.ExitStatus. The last two are of the extension: `partlyExecuted` sold what the pool takes
// and leaves the rest due; `deferred` sold nothing, and recorded that the exit is due, so that its floor widens.
const EXIT_STATUSES = [
  'executed',
  'notDue',
  'stalePrice',
  'paused',
  'notOpen',
  'failed',
  'partlyExecuted',
  'deferred',
] as const
type ExitStatus = (typeof EXIT_STATUSES)[number]

/**
 * What the router does with the exit of a position, with the revert data if it reverts. A `poolPrice` is the pool's: it
 * is below the exit's floor or too far from the oracle's, and that has been recorded already.
 */
export type DecodedExitStatus = { status: ExitStatus | 'poolPrice'; revertData: Hex | undefined }

/** Decodes a status that executeExits returned, with the revert data of the same position. */
export function decodeExitStatus(index: number | undefined, revertData: Hex | undefined): DecodedExitStatus {
  const status = EXIT_STATUSES[index ?? -1] ?? 'failed'
  return status === 'failed' ? decodeExitRevert(revertData) : { status, revertData }
}

// Errors that only delay an exit.
const statusByError: { [name in ContractError['name']]?: DecodedExitStatus['status'] } = {
  TriggerNotMet: 'notDue',
  StalePrice: 'stalePrice',
  TokenNotQuoted: 'stalePrice',
  SequencerDown: 'stalePrice',
  SequencerGracePeriod: 'stalePrice',
  TradingPaused: 'paused',
  PositionNotOpen: 'notOpen',
  PositionNotFound: 'notOpen',
  ExitFloorNotMet: 'poolPrice',
  SpotPriceDeviation: 'poolPrice',
  TwapDeviation: 'poolPrice',
  TwapUnavailable: 'poolPrice',
}

/** Decodes the revert data of an exit that reverted. */
export function decodeExitRevert(revertData: Hex | undefined): DecodedExitStatus {
  const error = decodeRevert(revertData)
  return { status: (error && statusByError[error.name]) ?? 'failed', revertData }
}
