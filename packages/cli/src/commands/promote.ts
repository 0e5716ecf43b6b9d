import type { Command } from 'commander'
import { createWalletClient, http, parseAbi, publicActions } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner } from '../keys/signer.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, keyOption, passwordFileOption, type SigningOptions } from './options.ts'
import { agentMissing } from './reads.ts'

type PromoteOptions = SigningOptions & { agent?: string; rpc: string }

const abi = parseAbi([
  'function trackOf(uint256 agentId) view returns (uint256)',
  'function promoteAgent(uint256 agentId, uint256 track)',
])

/** `ats promote`: calls the registry, because anybody may promote an agent and the service has no operation for it. */
export function promoteCommand(): Command {
  return createServiceCommand(
    'promote',
    'promote an agent to its next track, on chain; the key pays the gas',
    'ats promote --agent 1 --rpc http://127.0.0.1:8545',
  )
    .addOption(agentOption())
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .requiredOption('--rpc <url>', 'node to send the transaction to')
    .action(promote)
}

async function promote(options: PromoteOptions): Promise<void> {
  const { agent, output, rpc } = options
  if (agent === undefined) throw agentMissing()
  const reads = createReader(options)
  const [{ promotionReadiness }, { contracts }] = await Promise.all([
    reads.getRiskState({ agentId: agent }),
    reads.getDiscovery(),
  ])
  if (!promotionReadiness.eligible)
    throw new Failure('refused', `Agent ${agent} cannot be promoted yet: ${promotionReadiness.blockers.join('; ')}.`, {
      code: 'NOT_ELIGIBLE',
      remedy: 'Trade on; `ats risk-state` lists what is missing.',
    })
  const account = await openSigner(homeFolder(), options).unlock()
  const client = createWalletClient({ account, transport: http(rpc) }).extend(publicActions)
  const address = contracts.AgentRegistry as `0x${string}`
  const agentId = BigInt(agent)
  const track = await client.readContract({ address, abi, functionName: 'trackOf', args: [agentId] })
  const call = { address, abi, functionName: 'promoteAgent', args: [agentId, track + 1n] } as const
  await client.simulateContract({ ...call, account })
  const transactionHash = await client.writeContract({ ...call, chain: null })
  const receipt = await withProgress(
    'Waiting for the block',
    client.waitForTransactionReceipt({ hash: transactionHash }),
  )
  if (receipt.status !== 'success')
    throw new Failure('refused', `The promotion of agent ${agent} reverted in ${transactionHash}.`, {
      code: 'REVERTED',
    })
  createPrinter(output).result({ agentId: agent, track: `${track + 1n}`, transactionHash })
}
