import { type Command, Option } from 'commander'
import { Failure } from '../failure.ts'
import type { ServedStatistics } from '../leaderboard/verify-statistics.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, digits, type ServiceOptions } from './options.ts'
import { agentMissing } from './reads.ts'
import { contractsOf, noLogs } from './verify-leaderboard.ts'

type Query = Omit<Parameters<Reader['getAgentStats']>[0], 'agentId'>
type Options = ServiceOptions & Query & { rpc: string; fromBlock: string; agent?: string }

/** `ats verify stats`: recomputes an agent's statistics from the logs of the chain. */
export function verifyStatsCommand(): Command {
  return createServiceCommand(
    'stats',
    "recompute an agent's statistics from the logs of the chain, and compare them with the served ones",
    'ats verify stats --rpc https://node.example --from-block 100 --agent 1',
  )
    .requiredOption('--rpc <url>', 'node whose logs are read; use one that you trust')
    .addOption(
      new Option('--from-block <block>', 'block of the deployment, or an earlier one').default('0').argParser(digits),
    )
    .addOption(agentOption())
    .addOption(new Option('--period <period>').choices(['day', 'week', 'month', 'all']).default('all'))
    .addOption(new Option('--capital <capital>', 'only results with this capital').choices(['real', 'simulated']))
    .action(verify)
}

async function verify({ output, url, timeout, rpc, fromBlock, agent, ...query }: Options): Promise<void> {
  if (agent === undefined) throw agentMissing()
  const reader = createReader({ url, timeout })
  const [contracts, served, { verifyStatistics }] = await withProgress(
    'Reading the statistics',
    Promise.all([
      contractsOf(url, reader),
      reader.getAgentStats({ ...query, agentId: agent }),
      import('../leaderboard/verify-statistics.ts'),
    ]),
  )
  const { figures, differences } = await withProgress(
    'Reading logs and computing every figure',
    verifyStatistics({ rpcUrl: rpc, contracts, fromBlock: BigInt(fromBlock) }, served as ServedStatistics).catch(
      noLogs,
    ),
  )
  const valid = differences.length === 0
  createPrinter(output).result({ valid, figures, asOf: served.asOf, contracts, differences })
  if (valid) return
  throw new Failure('mismatch', `The statistics differ from the logs in ${differences.length} figures.`, {
    code: 'STATISTICS_MISMATCH',
    remedy: 'Compare the contracts with the deployment that you trust, and --from-block with its first block.',
    details: { differences },
  })
}
