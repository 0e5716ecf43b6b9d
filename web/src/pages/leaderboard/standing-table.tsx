import type { Schema } from '../../data/client.ts'
import { NoValue, Percent, Usdc } from '../../parts/figures.tsx'
import { TableScroll } from '../../parts/panel.tsx'
import { Address, CapitalMode, Untrusted } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { titleCase } from '../vault/tracks.tsx'

type Entry = Schema['LeaderboardEntry']
type Props = { entries: Entry[]; vaults: Schema['Vault'][]; isShort?: boolean }

const PPM_PER_BPS = 100

/** Agents with their figures in a period; the short form has the rank, the agent and its return. */
export const StandingTable = ({ entries, vaults, isShort = false }: Props) => (
  <TableScroll label="Standings">
    <table>
      <thead>
        <tr>
          <th scope="col" class="right rank">
            Rank
          </th>
          <th scope="col">Agent</th>
          <th scope="col" class="right">
            Return
          </th>
          <th scope="col" class="right">
            Profit
          </th>
          {!isShort && (
            <>
              <th scope="col" class="right">
                Drawdown
              </th>
              <th scope="col" class="right">
                Calmar
              </th>
              <th scope="col" class="right">
                Sharpe
              </th>
              <th scope="col" class="right">
                Trades
              </th>
              <th scope="col">Vault and track</th>
              <th scope="col">Owner</th>
              <th scope="col">Sampled</th>
            </>
          )}
        </tr>
      </thead>
      <tbody>
        {entries.map(entry => (
          <tr key={`${entry.agentId} ${entry.capital}`}>
            <td class="right num rank">{entry.rank}</td>
            <th scope="row" class="agent-name">
              <a href={`/app/agents/${entry.agentId}`}>
                <Untrusted text={entry.name} /> <span class="fine">#{entry.agentId}</span>
              </a>{' '}
              {entry.capital === 'simulated' && <CapitalMode mode="Simulated" />}
            </th>
            <td class="right">
              <Percent bps={entry.returnPpm / PPM_PER_BPS} signed />
            </td>
            <td class="right">
              <Usdc value={entry.pnlUsdc} signed />
            </td>
            {!isShort && <FurtherFigures entry={entry} vaults={vaults} />}
          </tr>
        ))}
      </tbody>
    </table>
  </TableScroll>
)

function FurtherFigures({ entry, vaults }: { entry: Entry; vaults: Schema['Vault'][] }) {
  const vault = vaults.find(({ contractAddress }) => contractAddress === entry.vault)
  return (
    <>
      <td class="right">
        <Percent bps={entry.drawdownPpm / PPM_PER_BPS} />
      </td>
      <td class="right">
        <Ratio milli={entry.calmarMilli} />
      </td>
      <td class="right">
        <Ratio milli={entry.sharpeMilli} />
      </td>
      <td class="right num">{entry.trades.toLocaleString('en')}</td>
      <td>
        {vault ? <a href={`/app/vaults/${vault.id}`}>{vault.name}</a> : <Address value={entry.vault} />}
        <span class="sub">{titleCase(entry.trackName)}</span>
      </td>
      <td>
        <Address value={entry.owner} />
        {entry.agentsOfOwner > 1 && <span class="sub">has {entry.agentsOfOwner} agents</span>}
      </td>
      <td>
        <Time value={entry.lastSample} />
        {entry.gapHours > 0 && (
          <span class="sub" title={entry.gaps.map(inUtc).join('\n')}>
            {entry.gapHours} {entry.gapHours === 1 ? 'hour' : 'hours'} without a price
          </span>
        )}
      </td>
    </>
  )
}

function inUtc(gap: string): string {
  const [from = '', to = ''] = gap.split('/').map(time => new Date(Number(time) * 1000).toISOString().slice(0, 16))
  return `${from} to ${to} UTC`
}

const Ratio = ({ milli }: { milli: number | null }) =>
  milli === null ? <NoValue /> : <span class="num">{(milli / 1000).toFixed(2).replace('-', '−')}</span>
