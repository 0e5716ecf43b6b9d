import type { Hex } from 'viem'
import { type ContractError, decodeRevert } from './decode-revert.ts'

// In the order of ITradeRouter.ExitStatus. The last two are of the extension: `partlyExecuted` sold what the pool takes and
// leaves the rest due; `deferred` sold nothing, and recorded that the exit is due, so that its floor widens.
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
export type ExitStatus = (typeof EXIT_STATUSES)[number]

/**
 * What the router does with the exit of a position, with the revert data if it reverts. A `poolPrice` is the pool's: it is
 * below the exit's floor or too far from the oracle's, and that has been recorded already.
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
