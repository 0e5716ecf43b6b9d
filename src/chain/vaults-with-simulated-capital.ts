import { CapitalMode, Track } from '@agent-trading-service/protocol/enums'
import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { vaultTrackRegistry } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/** Returns the configured vaults in which a track trades simulated capital. Throws CHAIN_UNREACHABLE. */
export async function vaultsWithSimulatedCapital(chain: Chain): Promise<ReadonlySet<Address>> {
  const vaults = Object.values(chain.vaults)
  const { values } = await readTree(
    chain,
    vaults.map(vault => ({
      vault,
      modes: Object.values(Track).map(track =>
        optional(call(vaultTrackRegistry(chain), 'capitalModeOf', [vault, BigInt(track)])),
      ),
    })),
  )
  return new Set(values.flatMap(({ vault, modes }) => (modes.includes(CapitalMode.Simulated) ? [vault] : [])))
}
