import type { Schema } from '../../data/client.ts'
import { formatBps, formatUsdc } from '../../format/amounts.ts'
import { formatDuration } from '../../format/time.ts'
import { TableScroll } from '../../parts/panel.tsx'
import { Badge } from '../../parts/text.tsx'

type Track = Schema['VaultTrackConfig']

const percent = (bps: number) => formatBps(bps, bps % 100 === 0 ? 0 : 2)
const usdc = (base: string) => `${formatUsdc(base, 0)} USDC`

/** The tracks of a vault with their policies in words. */
export const TrackTable = ({ vault }: { vault: Schema['Vault'] }) => (
  <TableScroll label={`Tracks of ${vault.name}`}>
    <table class="words">
      <thead>
        <tr>
          <th scope="col">Track</th>
          <th scope="col">What an agent may use</th>
          <th scope="col">Losses</th>
          <th scope="col">Exit ladder</th>
          <th scope="col">Next track after</th>
        </tr>
      </thead>
      <tbody>
        {vault.vaultTrackConfigs.map(track => (
          <tr key={track.trackId}>
            <th scope="row">
              {titleCase(track.trackName)} {!track.active && <Badge tone="warn">closed</Badge>}
            </th>
            <td data-label="What an agent may use">{capitalInWords(track)}</td>
            <td data-label="Losses">{lossesInWords(track)}</td>
            <td data-label="Exit ladder">{ladderInWords(track)}</td>
            <td data-label="Next track after">{promotionInWords(track)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableScroll>
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
  return `${track.minTrades} trades, ${formatDuration(period)} on the track, a score of ${track.promotionScore} of 100.`
}
