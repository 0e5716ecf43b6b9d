import { PageTitle } from '../parts/panel.tsx'
import { Empty } from '../parts/states.tsx'

export const NotFoundPage = () => (
  <>
    <PageTitle title="Not found" />
    <Empty title="There is no page at this address.">
      The <a href="/app/vaults">vaults</a> and the <a href="/app/leaderboard">leaderboard</a> lead to every agent.
    </Empty>
  </>
)
