import { useRead } from '../../data/use-read.ts'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { StandingTable } from '../leaderboard/standing-table.tsx'

/** The top of the leaderboard. */
export function TopAgents() {
  const leaderboard = useRead('getLeaderboard', { period: 'all', limit: 5 })
  return (
    <WhenReady resource={leaderboard} what="the leaderboard">
      {({ entries }) =>
        entries.length === 0 ? (
          <Empty title="No agent has traded yet.">An agent is ranked after its first trade.</Empty>
        ) : (
          <StandingTable entries={entries} vaults={[]} isShort />
        )
      }
    </WhenReady>
  )
}
