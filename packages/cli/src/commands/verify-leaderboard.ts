import { type Command, Option } from 'commander'
import type { Address } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import type { ServedLeaderboard } from '../leaderboard/verify-leaderboard.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import { pinsOf } from '../trading/pins.ts'
import { createServiceCommand, digits, integer, rpcOption, type ServiceOptions } from './options.ts'

type Query = NonNullable<Parameters<Reader['getLeaderboard']>[0]>
type Options = ServiceOptions & Query & { rpc: string; fromBlock: string }

/** How long an agent may have traded before the service lists it. */
const MAX_SAMPLE_AGE_SECONDS = 900
const TRACKS = ['challenge', 'funded', 'prime']

/** `ats verify leaderboard`: recomputes a leaderboard from the logs of the chain. */
export function verifyLeaderboardCommand(): Command {
  return createServiceCommand(
    'leaderboard',
    'recompute a leaderboard from the logs of the chain, and compare it with the served one',
    'ats verify leaderboard --rpc https://node.example --from-block 100 --period week',
  )
    .addOption(rpcOption('node whose logs are read; use one that you trust').makeOptionMandatory())
    .addOption(
      new Option('--from-block <block>', 'block of the deployment, or an earlier one').default('0').argParser(digits),
    )
    .addOption(new Option('--period <period>').choices(['day', 'week', 'month', 'all']).default('all'))
    .option('--at <time>', 'a time in the period, in Unix seconds; now by default')
    .option('--vault <vault>', 'only agents of this vault; slug or address')
    .option('--track <track>', 'only agents on this track; number or name')
    .addOption(new Option('--capital <capital>', 'only results with this capital').choices(['real', 'simulated']))
    .addOption(new Option('--sort <figure>').choices(['return', 'drawdown', 'calmar', 'sharpe']).default('return'))
    .option('--min-trades <count>', 'only agents with as many trades', integer(0, 1_000_000))
    .action(verify)
}

async function verify({ output, url, timeout, rpc, fromBlock, ...query }: Options): Promise<void> {
  const reader = createReader({ url, timeout })
  const [contracts, selection, pages, { verifyLeaderboard }] = await withProgress(
    'Reading the leaderboard',
    Promise.all([
      contractsOf(url, reader),
      selectionOf(reader, query),
      readPages(reader, query),
      import('../leaderboard/verify-leaderboard.ts'),
    ]),
  )
  const { entries, differences } = await withProgress(
    'Reading logs and computing every entry',
    verifyLeaderboard(
      { rpcUrl: rpc, contracts, fromBlock: BigInt(fromBlock) },
      pages,
      selection,
      MAX_SAMPLE_AGE_SECONDS,
    ).catch(noLogs),
  )
  const valid = differences.length === 0
  createPrinter(output).result({ valid, entries, asOf: pages.at(-1)?.asOf, contracts, differences })
  if (valid) return
  throw new Failure('mismatch', `The leaderboard differs from the logs in ${differences.length} places.`, {
    code: 'LEADERBOARD_MISMATCH',
    remedy: 'Compare the contracts with the deployment that you trust, and --from-block with its first block.',
    details: { differences },
  })
}

/** Returns the contracts that the service names. Throws if they differ from the first contact's. */
export async function contractsOf(url: string, reader: Reader): Promise<Record<string, Address>> {
  const pins = await pinsOf(homeFolder(), url, reader)
  const { contracts } = await reader.getDiscovery()
  const pinned = { TradeRouter: pins.tradeRouter, AgentRegistry: pins.agentRegistry }
  for (const [name, address] of Object.entries(pinned))
    if (address !== undefined && contracts[name]?.toLowerCase() !== address.toLowerCase())
      throw new Failure('mismatch', `The service names ${contracts[name]} as its ${name}; expected ${address}.`, {
        code: 'CONTRACT_MISMATCH',
        remedy: 'Check --url. If the deployment has moved, delete its entry in deployments.json.',
      })
  return contracts as Record<string, Address>
}

async function readPages(reader: Reader, query: Query): Promise<ServedLeaderboard[]> {
  const pages: ServedLeaderboard[] = []
  for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null)
    pages.push((await reader.getLeaderboard({ ...query, limit: 100, ...(cursor && { cursor }) })) as ServedLeaderboard)
  return pages
}

/** Returns the filters of the leaderboard, with the vault's address and the track's number. */
async function selectionOf(reader: Reader, { vault, track, capital }: Query) {
  const named = track === undefined ? -1 : TRACKS.indexOf(`${track}`.toLowerCase())
  return {
    ...(vault !== undefined && { vault: (await reader.getVault({ id: vault })).vault.contractAddress }),
    ...(track !== undefined && { track: named < 0 ? Number(track) : named }),
    ...(capital !== undefined && { capital }),
  }
}

/** Throws that the logs could not be read. viem's messages contain the node's URL, which may hold a key. */
export function noLogs(error: unknown): never {
  throw new Failure('unavailable', `The logs could not be read (${error instanceof Error ? error.name : 'error'}).`, {
    code: 'RPC_FAILED',
    remedy: 'Check --rpc; the node has to serve logs from --from-block on.',
  })
}
