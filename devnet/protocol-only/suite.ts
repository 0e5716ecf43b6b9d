import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Address, type Hex, parseAbi } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import type { Sender } from '../sender.ts'
import { deployProtocol, deployVault, wireProtocol } from '../suite.ts'
import type { ProtocolSuite, SuiteConfig } from '../suite-config.ts'
import { roleHolders } from '../suite-roles.ts'

// Where the contracts without the extension differ from ours.
const routerAbi = parseAbi([
  'constructor(address admin, address usdc, address agentRegistry, address allocationManager, address positionManager, address vaultTrackRegistry)',
])
const oracleAbi = parseAbi(['function setAssetConfig(address asset, uint32 maxAge, uint32 maxDeviationBps)'])

/**
 * Deploys contracts that have the functions of protocol.md only: no timelock, no trade policy, no guardian, no
 * simulated capital. The sender stays their admin. For tests of reads and trades against such a deployment.
 */
export async function deployProtocolOnly(sender: Sender, config: SuiteConfig): Promise<ProtocolSuite> {
  const bytecodes = JSON.parse(readFileSync(join(import.meta.dirname, 'bytecode.json'), 'utf8')) as Record<string, Hex>
  const bytecodeOf = (name: string) => ({ bytecode: bytecodes[name] as Hex })
  const contracts = await deployProtocol(
    sender,
    config,
    ({ usdc, AgentRegistry, AllocationManager, PositionManager, VaultTrackRegistry }) =>
      sender.deploy({
        name: 'TradeRouter',
        abi: routerAbi,
        args: [sender.address, usdc, AgentRegistry, AllocationManager, PositionManager, VaultTrackRegistry],
        ...bytecodeOf('TradeRouter'),
      }),
    bytecodeOf,
  )
  await wireProtocol(sender, config, contracts)
  for (const { address, maxAge, maxDeviationBps } of config.tokens) {
    await sender.write({
      address: contracts.PriceOracle,
      abi: oracleAbi,
      functionName: 'setAssetConfig',
      args: [address, maxAge, maxDeviationBps],
    })
  }
  const vaults: Record<string, Address> = {}
  for (const vault of config.vaults) {
    vaults[vault.slug] = await deployVault(sender, config, contracts, vault, bytecodeOf('MandateVault'))
  }
  for (const { address, name, role, holders } of roleHolders(config.roles, { contracts, vaults })) {
    if (name === 'GUARDIAN_ROLE') continue
    for (const account of holders) {
      await sender.write({ address, abi: agentRegistryAbi, functionName: 'grantRole', args: [role, account] })
    }
  }
  await sender.settle()
  return { contracts, vaults }
}
