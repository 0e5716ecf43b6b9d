import type { Command } from 'commander'
import { parseAbi } from 'viem'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { openChainAccount } from '../trading/chain-account.ts'
import { createReader } from '../trading/create-reader.ts'
import {
  agentOption,
  createServiceCommand,
  keyOption,
  passwordFileOption,
  rpcOption,
  type SigningOptions,
} from './options.ts'
import { agentMissing } from './reads.ts'

type PromoteOptions = SigningOptions & { agent?: string; rpc: string }

const abi = parseAbi([
  'function trackOf(uint256 agentId) view returns (uint256)',
  'function vaultOf(uint256 agentId) view returns (address)',
  'function promoteAgent(uint256 agentId, uint256 track)',
])

/**
 * `ats promote`: calls the registry, because any account may promote an agent and the service has no operation for it.
 */
export function promoteCommand(): Command {
  return createServiceCommand(
    'promote',
    'promote an agent to its next track, on chain; the key pays the gas',
    'ats promote --agent 1 --rpc http://127.0.0.1:8545',
  )
    .addOption(agentOption())
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(rpcOption('node to send the transaction to').makeOptionMandatory())
    .option('-y, --yes', 'do not ask before sending')
    .action(promote)
}

async function promote(options: PromoteOptions): Promise<void> {
  const { agent, output } = options
  if (agent === undefined) throw agentMissing()
  const reads = createReader(options)
  const { promotionReadiness } = await reads.getRiskState({ agentId: agent })
  if (!promotionReadiness.eligible)
    throw new Failure('refused', `Agent ${agent} cannot be promoted yet: ${promotionReadiness.blockers.join('; ')}.`, {
      code: 'NOT_ELIGIBLE',
      remedy: 'Trade on; `ats risk-state` lists what is missing.',
    })
  const { client, agentRegistry: address, pricesOf, send } = await openChainAccount(options, reads)
  const agentId = BigInt(agent)
  const track = await client.readContract({ address, abi, functionName: 'trackOf', args: [agentId] })
  const vault = await client.readContract({ address, abi, functionName: 'vaultOf', args: [agentId] })
  const { positions } = await reads.listPositions({ agentId: agent })
  const printer = createPrinter(output)
  const transactionHash = await send(printer, [
    {
      does: `Promote agent ${agent} to track ${track + 1n}`,
      address,
      abi,
      functionName: 'promoteAgent',
      args: [agentId, track + 1n],
      prices: pricesOf(
        vault,
        positions.map(({ symbol }) => symbol),
      ),
    },
  ])
  printer.result({ agentId: agent, track: `${track + 1n}`, transactionHash })
}
