import type { Hex } from 'viem'
import { type ContractError, decodeRevert } from './contract-errors.ts'

// In the order of ITradeRouter.ExitStatus.
const EXIT_STATUSES = ['executed', 'notDue', 'stalePrice', 'paused', 'notOpen', 'failed'] as const
export type ExitStatus = (typeof EXIT_STATUSES)[number]

/** What the router does with the exit of a position, with the revert data if it does not execute it. */
export type ExitVerdict = { status: ExitStatus; revertData: Hex | undefined }

/** Returns the status of a number that executeExits returned. */
export const exitStatusAt = (index: number | undefined): ExitStatus => EXIT_STATUSES[index ?? -1] ?? 'failed'

// Errors that only delay an exit.
const statusByError: { [name in ContractError['name']]?: ExitStatus } = {
  TriggerNotMet: 'notDue',
  StalePrice: 'stalePrice',
  TokenNotQuoted: 'stalePrice',
  SequencerDown: 'stalePrice',
  SequencerGracePeriod: 'stalePrice',
  TradingPaused: 'paused',
  PositionNotOpen: 'notOpen',
  PositionNotFound: 'notOpen',
}

/** Returns the verdict of an exit that reverted. */
export function verdictOfRevert(revertData: Hex | undefined): ExitVerdict {
  const error = decodeRevert(revertData)
  return { status: (error && statusByError[error.name]) ?? 'failed', revertData }
}
