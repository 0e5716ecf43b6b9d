import { gasLimitOf } from '@agent-trading-service/protocol/gas-limit'
import type { Command } from 'commander'
import { createWalletClient, defineChain, http, parseAbi, publicActions } from 'viem'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner } from '../keys/signer.ts'
import { askToContinue, canAsk } from '../output/ask.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader } from '../trading/create-reader.ts'
import { pinsOf } from '../trading/pins.ts'
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
  const { agent, output, rpc, url, yes } = options
  if (agent === undefined) throw agentMissing()
  const home = homeFolder()
  const reads = createReader(options)
  const [{ promotionReadiness }, { chainId, agentRegistry: address }] = await Promise.all([
    reads.getRiskState({ agentId: agent }),
    pinsOf(home, url, reads),
  ])
  if (chainId === undefined || address === undefined)
    throw new Failure('unavailable', `The service at ${url} names no agent registry.`, {
      code: 'NOT_DEPLOYED',
      remedy: 'Check the URL, or ask the operator.',
    })
  if (!promotionReadiness.eligible)
    throw new Failure('refused', `Agent ${agent} cannot be promoted yet: ${promotionReadiness.blockers.join('; ')}.`, {
      code: 'NOT_ELIGIBLE',
      remedy: 'Trade on; `ats risk-state` lists what is missing.',
    })
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpc] } },
  })
  const signer = openSigner(home, options)
  const client = createWalletClient({ chain, transport: http(rpc) }).extend(publicActions)
  const given = await client.getChainId()
  if (given !== chainId)
    throw new Failure('mismatch', `The node at --rpc is of chain ${given}; expected ${chainId}. Nothing was sent.`, {
      code: 'CHAIN_MISMATCH',
      remedy: 'Pass a node of the chain that the service is deployed on.',
    })
  const agentId = BigInt(agent)
  const track = await client.readContract({ address, abi, functionName: 'trackOf', args: [agentId] })
  const call = { address, abi, functionName: 'promoteAgent', args: [agentId, track + 1n] } as const
  await client.simulateContract({ ...call, account: signer.address })
  const printer = createPrinter(output)
  printer.note(
    `Promote agent ${agent} to track ${track + 1n}: a transaction of ${signer.address} to ${address} on chain ${chainId}`,
  )
  if (!yes && canAsk()) await askToContinue('Sign and send?')
  const gas = gasLimitOf(await client.estimateContractGas({ ...call, account: signer.address }))
  const transactionHash = await client.writeContract({ ...call, account: await signer.unlock(), gas })
  const receipt = await withProgress(
    'Waiting for the block',
    client.waitForTransactionReceipt({ hash: transactionHash }),
  )
  if (receipt.status !== 'success')
    throw new Failure('refused', `The promotion of agent ${agent} reverted in ${transactionHash}.`, {
      code: 'REVERTED',
    })
  printer.result({ agentId: agent, track: `${track + 1n}`, transactionHash })
}
