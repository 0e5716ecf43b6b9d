import { readFileSync } from 'node:fs'
import { certificateHash, resultsHash } from '@agent-trading-service/protocol/certificate-hash'
import type { Command } from 'commander'
import { type Address, type Hex, parseAbi } from 'viem'
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

type ClaimOptions = SigningOptions & { agent?: string; rpc: string }
type Certificate = { result: { markets: { hash: string } }; owner: Address; hash: Hex }

const abi = parseAbi([
  'function ownerControls() view returns (address)',
  'function claimCertificate(uint256 agentId, bytes32 examination, bytes32 results)',
  'error NotAgentOwner(uint256 agentId, address caller)',
  'error CertificateAlreadyClaimed(uint256 agentId, bytes32 certificate)',
])

/** `ats claim`: calls the owner controls, because a claim counts only from the owner itself. */
export function claimCommand(): Command {
  return createServiceCommand(
    'claim',
    "claim an examination's certificate for an agent, on chain; its owner's key pays the gas",
    'ats claim mine.json --agent 1 --key owner --rpc http://127.0.0.1:8545',
  )
    .argument('<certificate>', 'the file that `ats examine --certificate` has written')
    .addOption(agentOption())
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(rpcOption('node to send the transaction to').makeOptionMandatory())
    .option('-y, --yes', 'do not ask before sending')
    .action(claim)
}

async function claim(file: string, options: ClaimOptions): Promise<void> {
  const { agent, output } = options
  if (agent === undefined) throw agentMissing()
  const { result, owner, hash } = readCertificate(file)
  const { client, agentRegistry, address: account, send } = await openChainAccount(options, createReader(options))
  if (account !== owner)
    throw new Failure('mismatch', `The certificate is for agents of ${owner}; the key is ${account}.`, {
      code: 'CERTIFICATE_OF_ANOTHER_OWNER',
      remedy: 'Nothing was sent. Pass the key of that owner, or examine the agent again with --owner.',
    })
  const printer = createPrinter(output)
  const examination: Hex = `0x${result.markets.hash}`
  const transactionHash = await send(printer, [
    {
      does: `Claim certificate ${hash} for agent ${agent}, for good`,
      address: await client.readContract({ address: agentRegistry, abi, functionName: 'ownerControls' }),
      abi,
      functionName: 'claimCertificate',
      args: [BigInt(agent), examination, resultsHash(result)],
    },
  ])
  printer.result({ agentId: agent, examination, certificate: hash, transactionHash })
}

/** Throws CERTIFICATE_INVALID unless the hash of the file is that of its result. */
function readCertificate(file: string): Certificate {
  try {
    const certificate: Certificate = JSON.parse(readFileSync(file, 'utf8'))
    if (certificateHash(certificate.result, certificate.owner) === certificate.hash) return certificate
  } catch {
    // The same to the user: this file cannot be claimed.
  }
  throw new Failure('usage', `${file} is no certificate, or was changed.`, {
    code: 'CERTIFICATE_INVALID',
    remedy: '`ats examine --certificate` writes one.',
  })
}
