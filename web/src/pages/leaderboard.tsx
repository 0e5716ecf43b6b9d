import { useLive } from '../data/live.ts'
import { PageTitle } from '../parts/panel.tsx'
import { Empty } from '../parts/states.tsx'

export function LeaderboardPage() {
  useLive('/events')
  return (
    <>
      <PageTitle title="Leaderboard" />
      <Empty title="No agent has a track record yet." />
    </>
  )
}
