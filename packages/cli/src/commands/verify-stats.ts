import { type Command, Option } from 'commander'
import { Failure } from '../failure.ts'
import type { VerifiedDeployment } from '../leaderboard/logged-history.ts'
import type { ServedStatistics } from '../leaderboard/verify-statistics.ts'
import type { ServedVaultStatistics } from '../leaderboard/verify-vault-statistics.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, digits, rpcOption, type ServiceOptions } from './options.ts'
import { agentMissing } from './reads.ts'
import { contractsOf, noLogs } from './verify-leaderboard.ts'

type Query = Omit<Parameters<Reader['getAgentStats']>[0], 'agentId'>
type Options = ServiceOptions & Query & { rpc: string; fromBlock: string; agent?: string; vault?: string }

/** `ats verify stats`: recomputes the statistics of an agent or of a vault from the logs of the chain. */
export function verifyStatsCommand(): Command {
  return createServiceCommand(
    'stats',
    'recompute the statistics of an agent or of a vault from the logs of the chain, and compare them with the served ones',
    'ats verify stats --rpc https://node.example --from-block 100 --agent 1',
  )
    .addOption(rpcOption('node whose logs are read; use one that you trust').makeOptionMandatory())
    .addOption(
      new Option('--from-block <block>', 'block of the deployment, or an earlier one').default('0').argParser(digits),
    )
    .addOption(agentOption())
    .addOption(
      new Option('--vault <vault>', 'slug or address of a vault, in place of an agent').conflicts([
        'period',
        'capital',
      ]),
    )
    .addOption(new Option('--period <period>').choices(['day', 'week', 'month', 'all']).default('all'))
    .addOption(new Option('--capital <capital>', 'only results with this capital').choices(['real', 'simulated']))
    .action(verify)
}

/** What the service says, and how it is compared with the logs. */
type Comparison = {
  asOf: unknown
  compare: (deployment: VerifiedDeployment) => Promise<{ figures: number; differences: string[] }>
}

async function readVault(reader: Reader, id: string): Promise<Comparison> {
  const served = await reader.getVaultStats({ id })
  const { verifyVaultStatistics } = await import('../leaderboard/verify-vault-statistics.ts')
  return {
    asOf: served.asOf,
    compare: deployment => verifyVaultStatistics(deployment, served as ServedVaultStatistics),
  }
}

async function readAgent(reader: Reader, query: Query & { agentId: string }): Promise<Comparison> {
  const served = await reader.getAgentStats(query)
  const { verifyStatistics } = await import('../leaderboard/verify-statistics.ts')
  return { asOf: served.asOf, compare: deployment => verifyStatistics(deployment, served as ServedStatistics) }
}

async function verify({ output, url, timeout, rpc, fromBlock, agent, vault, ...query }: Options): Promise<void> {
  const reader = createReader({ url, timeout })
  const read = () => {
    if (vault !== undefined) return readVault(reader, vault)
    if (agent === undefined) throw agentMissing()
    return readAgent(reader, { ...query, agentId: agent })
  }
  const [contracts, { asOf, compare }] = await withProgress(
    'Reading the statistics',
    Promise.all([contractsOf(url, reader), read()]),
  )
  const { figures, differences } = await withProgress(
    'Reading logs and computing every figure',
    compare({ rpcUrl: rpc, contracts, fromBlock: BigInt(fromBlock) }).catch(noLogs),
  )
  const valid = differences.length === 0
  createPrinter(output).result({ valid, figures, asOf, contracts, differences })
  if (valid) return
  throw new Failure('mismatch', `The statistics differ from the logs in ${differences.length} figures.`, {
    code: 'STATISTICS_MISMATCH',
    remedy: 'Compare the contracts with the deployment that you trust, and --from-block with its first block.',
    details: { differences },
  })
}
