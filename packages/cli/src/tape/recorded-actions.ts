import { type Address, formatUnits, getAddress, type PublicClient, parseAbi, parseEventLogs } from 'viem'
import { readLogs } from '../read-logs.ts'
import type { VenueToken } from './venue.ts'

/**
 * An announced change of what a token stands for: its multiplier as a decimal, and when it takes effect in Unix
 * seconds.
 */
export type RecordedAction = { symbol: string; multiplier: string; effectiveAt: number }

const MULTIPLIER_DECIMALS = 18

/** As deployed, and as in a draft of the standard. */
const eventAbi = parseAbi([
  'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp)',
  'event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 setAtTimestamp, uint256 effectiveAtTimestamp)',
])

/** Reads the corporate actions that tokens announced in an inclusive range of blocks, oldest first. */
export async function readActions(
  client: PublicClient,
  tokens: readonly Pick<VenueToken, 'symbol' | 'address'>[],
  range: readonly [bigint, bigint],
) {
  const symbolOf = new Map<Address, string>(tokens.map(({ address, symbol }) => [getAddress(address), symbol]))
  const logs = await readLogs(client, [...symbolOf.keys()], range, eventAbi)
  return parseEventLogs({ abi: eventAbi, logs }).flatMap(({ address, blockNumber, args }) => {
    const symbol = symbolOf.get(getAddress(address))
    if (symbol === undefined) return []
    const [before, multiplier] = [args.oldMultiplier, args.newMultiplier].map(each =>
      formatUnits(each, MULTIPLIER_DECIMALS),
    ) as [string, string]
    const action: RecordedAction = { symbol, multiplier, effectiveAt: Number(args.effectiveAtTimestamp) }
    return [{ blockNumber, before, action }]
  })
}

/**
 * Returns what the tokens stood for before actions, as actions of a time: what the first one says of the time before,
 * or what they stand for now without one. Tokens that stood for one share are left out.
 */
export const multipliersBefore = (
  tokens: readonly Pick<VenueToken, 'symbol' | 'multiplier'>[],
  actions: Awaited<ReturnType<typeof readActions>>,
  time: number,
): RecordedAction[] =>
  tokens.flatMap(({ symbol, multiplier = '1' }) => {
    const before = actions.find(({ action }) => action.symbol === symbol)?.before ?? multiplier
    return before === '1' ? [] : [{ symbol, multiplier: before, effectiveAt: time }]
  })
