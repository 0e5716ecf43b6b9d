import { CapitalMode, Track } from '@agent-trading-service/protocol/enums'
import type { Address } from 'viem'
import type { Chain } from './configured-chain.ts'
import { vaultTrackRegistry } from './contracts.ts'
import { call, optional, type ValuesOf } from './read-tree.ts'

export const capitalModeCalls = (chain: Chain) =>
  Object.values(chain.vaults).map(vault => ({
    vault,
    modes: Object.values(Track).map(track =>
      optional(call(vaultTrackRegistry(chain), 'capitalModeOf', [vault, BigInt(track)])),
    ),
  }))

/** Returns the vaults in which a track trades simulated capital, from the values of `capitalModeCalls`. */
export const vaultsWithSimulatedCapital = (
  values: ValuesOf<ReturnType<typeof capitalModeCalls>>,
): ReadonlySet<Address> =>
  new Set(values.flatMap(({ vault, modes }) => (modes.includes(CapitalMode.Simulated) ? [vault] : [])))
