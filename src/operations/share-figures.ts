import { OperationReply } from '../call.ts'
import { withDeadline } from '../concurrency.ts'
import type { Context } from '../context.ts'
import { getLeaderboard } from './leaderboard.ts'
import { getVaultStats } from './vault-stats.ts'
import { listVaults } from './vaults.ts'

/** The name and the return of a page's subject: of an agent since its first trade, of a vault since its start. */
export type ShareFigure = { name: string; returnPpm: number | null }
type Figures = ReadonlyMap<string, ShareFigure>

const MAX_AGE_MS = 60_000
/** What fetches previews gives up soon; without figures, the page still has its title. */
const MAX_WAIT_MS = 2_500
const MAX_VAULTS = 8

/**
 * Creates what previews of shared links show: one read a minute of the hundred best agents and the first vaults serves
 * them all, so that strangers cannot make it cost more.
 */
export function createShareFigures(context: Context) {
  let known: { figures: Figures; at: number } = { figures: new Map(), at: 0 }

  async function refresh(): Promise<void> {
    const at = Date.now()
    known = { ...known, at } // one attempt a minute, also if it fails
    known = { figures: await readFigures(context), at }
  }
  return {
    /** Returns the figure of a page by its path; undefined if there is none, or if it cannot be read in time. */
    async of(path: string): Promise<ShareFigure | undefined> {
      if (Date.now() - known.at >= MAX_AGE_MS)
        await withDeadline(
          refresh().catch(() => {}),
          Date.now() + MAX_WAIT_MS,
          () => undefined,
        )
      return known.figures.get(path)
    },
  }
}

const bodyOf = <Body>(output: Body | OperationReply<Body>): Body =>
  output instanceof OperationReply ? output.body : output

async function readFigures(context: Context): Promise<Figures> {
  const [{ entries }, { vaults }] = await Promise.all([
    getLeaderboard.run(context, { period: 'all', sort: 'return', minTrades: 1, limit: 100 }, {}).then(bodyOf),
    listVaults.run(context, {}, {}).then(bodyOf),
  ])
  const figures = await Promise.all(
    vaults.slice(0, MAX_VAULTS).map(async ({ id, name }) => {
      const stats = await getVaultStats.run(context, { id, interval: '1d' }, {})
      const { performance } = bodyOf(stats)
      return [`/app/vaults/${id}`, { name, returnPpm: performance.returnPpm }] as const
    }),
  )
  // An agent may be ranked with real capital and on paper: the better one comes first.
  const agents = entries
    .toReversed()
    .map(({ agentId, name, returnPpm }) => [`/app/agents/${agentId}`, { name, returnPpm }] as const)
  return new Map([...agents, ...figures])
}
