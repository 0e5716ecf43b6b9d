import type { Hex, PublicClient } from 'viem'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import type { Deployment } from './deployment.ts'
import { startReportServer } from './report-server.ts'
import { reportConfig } from './report-signers.ts'

/** Credentials of the embedded chain's provider: worth nothing, and published with this code. */
const CREDENTIALS = { key: '00000000-0000-4000-8000-000000000059', secret: 'secret of the embedded chain' }

/** From 8 decimals to 18. */
const REPORT_UNIT = 10n ** 10n

/**
 * Starts the provider of signed reports of an embedded chain: at the time of the newest block, each stream says the
 * price that the oracle has of its token, until another one is set.
 */
export async function startReports(
  client: PublicClient,
  { contracts, tokens }: Pick<Deployment, 'contracts' | 'tokens'>,
) {
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi }
  const streams: Record<string, readonly Hex[]> = {}
  for (const [symbol, token] of Object.entries(tokens)) {
    const { feedIds } = await client.readContract({ ...oracle, functionName: 'sourceOf', args: [token] })
    streams[symbol] = feedIds
  }
  const symbolOf = new Map(Object.entries(streams).flatMap(([symbol, ids]) => ids.map(id => [id, symbol] as const)))
  const server = await startReportServer({
    ...CREDENTIALS,
    configDigest: reportConfig.digest,
    streams,
    now: async () => Number((await client.getBlock()).timestamp),
    async priceOf(feedId) {
      const token = tokens[symbolOf.get(feedId) ?? '']
      if (token === undefined) return undefined
      const [price] = await client.readContract({ ...oracle, functionName: 'peekPrice', args: [token] })
      return price * REPORT_UNIT
    },
  })
  return { deployment: { url: server.url, ...CREDENTIALS }, stop: server.stop }
}
