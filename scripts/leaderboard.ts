import { parseArgs } from 'node:util'
import type { Address } from 'viem'
import { readDeployment } from '../devnet/deployment.ts'
import { type ServedLeaderboard, verifyLeaderboard } from './leaderboard-from-logs.ts'

// `npm run leaderboard`: prints the leaderboard of a service. `-- --verify` recomputes it from the logs of the chain, through
// --rpc alone, and exits with code 1 if the served one differs. Without --url and --rpc it uses the running devnet.

const { values } = parseArgs({
  options: {
    verify: { type: 'boolean', default: false },
    url: { type: 'string' },
    rpc: { type: 'string' },
    'from-block': { type: 'string', default: '0' },
    period: { type: 'string', default: 'all' },
    at: { type: 'string' },
    vault: { type: 'string' },
    track: { type: 'string' },
    capital: { type: 'string' },
    sort: { type: 'string', default: 'return' },
    minTrades: { type: 'string', default: '1' },
  },
})
const { verify, url, rpc, 'from-block': fromBlock, ...query } = values
const baseUrl = url ?? readDeployment().baseUrl
const rpcUrl = rpc ?? readDeployment().rpcUrl

async function get<Body>(path: string): Promise<Body> {
  const response = await fetch(new URL(path, baseUrl))
  const body = await response.json()
  if (!response.ok) throw new Error(`GET ${path} returned ${response.status}: ${JSON.stringify(body)}`)
  return body as Body
}

const pages: ServedLeaderboard[] = []
for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null) {
  const parameters = Object.entries({ ...query, limit: '100', ...(cursor && { cursor }) })
  const defined = parameters.filter((entry): entry is [string, string] => entry[1] !== undefined)
  pages.push(await get<ServedLeaderboard>(`/leaderboard?${new URLSearchParams(defined)}`))
}
console.table(
  pages
    .flatMap(page => page.entries)
    .map(({ rank, agentId, capital, returnPpm, drawdownPpm, calmarMilli, sharpeMilli, trades }) => ({
      rank,
      agentId,
      capital,
      returnPpm,
      drawdownPpm,
      calmarMilli,
      sharpeMilli,
      trades,
    })),
)
if (verify) {
  const { contracts } = await get<{ contracts: Record<string, Address> }>('/')
  const { entries, differences } = await verifyLeaderboard(
    { rpcUrl, contracts, fromBlock: BigInt(fromBlock) },
    pages,
    await selectionOf(query),
  )
  for (const difference of differences) console.error(difference)
  console.log(`${entries} entries recomputed from the logs, ${differences.length} differences`)
  process.exitCode = differences.length > 0 ? 1 : 0
}

/** Returns the filters by which the leaderboard was selected, with the vault's address and the track's number. */
async function selectionOf({ vault, track, capital }: typeof query) {
  const { contractAddress } = vault ? await get<{ contractAddress: string }>(`/vaults/${vault}`) : {}
  const tracks = ['challenge', 'funded', 'prime']
  const named = track === undefined ? undefined : tracks.indexOf(track.toLowerCase())
  return {
    ...(contractAddress !== undefined && { vault: contractAddress }),
    ...(track !== undefined && { track: named === undefined || named < 0 ? Number(track) : named }),
    ...(capital !== undefined && { capital }),
  }
}
