import { durationText } from '@agent-trading-service/protocol/duration'
import type { Schema } from '../../data/client.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Badge } from '../../parts/text.tsx'

type Track = Schema['VaultTrackConfig']

const percent = (bps: number) => formatBps(bps, bps % 100 === 0 ? 0 : 2)
const usdc = (base: string) => `${formatUsdc(base, 0)} USDC`

const COLUMNS: Column<Track>[] = [
  {
    head: 'Track',
    part: 'name',
    cell: ({ trackName, active }) => (
      <>
        {titleCase(trackName)} {!active && <Badge tone="warn">closed</Badge>}
      </>
    ),
  },
  { head: 'What an agent may use', part: 'wide', wraps: true, cell: track => capitalInWords(track) },
  { head: 'Losses', part: 'wide', wraps: true, cell: track => lossesInWords(track) },
  { head: 'Exit ladder', part: 'wide', wraps: true, cell: track => ladderInWords(track) },
  { head: 'Next track after', part: 'wide', wraps: true, cell: track => promotionInWords(track) },
]

/** The tracks of a vault with their policies in words. */
export const TrackTable = ({ vault: { name, vaultTrackConfigs } }: { vault: Schema['Vault'] }) => (
  <DataTable
    label={`Tracks of ${name}`}
    columns={COLUMNS}
    rows={vaultTrackConfigs}
    keyOf={({ trackId }) => `${trackId}`}
  />
)

export const titleCase = (name: string): string => name.charAt(0) + name.slice(1).toLowerCase()

function capitalInWords(track: Track): string {
  const turnover =
    track.maxDailyTurnoverBps === 0 ? '' : `, and buys for at most ${percent(track.maxDailyTurnoverBps)} of them a day`
  return `Starts with ${usdc(track.initialAllocation)}, grows to at most ${usdc(track.maxAllocation)}. A trade is at most ${percent(track.maxTradeSizeBps)} of the vault's assets${turnover}.`
}

function lossesInWords(track: Track): string {
  const parts: string[] = []
  if (track.maxDailyLossBps > 0)
    parts.push(`No new risk after a daily loss of ${percent(track.maxDailyLossBps)} of the allocation.`)
  if (track.maxDrawdownBps > 0) parts.push(`No buying beyond a drawdown of ${percent(track.maxDrawdownBps)}.`)
  return parts.join(' ') || 'No limit of the track.'
}

function ladderInWords(track: Track): string {
  const stop = track.maxStopLossBps === 0 ? 'at any depth' : `at most ${percent(track.maxStopLossBps)} below the entry`
  const [from, to] = [track.minTakeProfitBps, track.maxTakeProfitBps]
  const profit =
    to === 0
      ? from === 0
        ? 'at any price above the entry'
        : `at least ${percent(from)} above the entry`
      : `${percent(from)} to ${percent(to)} above the entry`
  const required = (isRequired: boolean) => (isRequired ? 'required' : 'optional')
  return `Stop-loss ${required(track.requireStopLoss)}, ${stop}. Take-profit ${required(track.requireTakeProfit)}, ${profit}.`
}

function promotionInWords(track: Track): string {
  if (track.promotionScore === 0 && track.minTrades === 0) return 'This is the last track.'
  const period = Number(track.evaluationPeriod)
  const trades = track.minTrades === 1 ? 'trade' : 'trades'
  return `${track.minTrades} ${trades}, ${durationText(period)} on the track, a score of ${track.promotionScore} of 100.`
}
