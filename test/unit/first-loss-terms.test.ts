import type { DeploymentFacts, TrackFact } from '@agent-trading-service/protocol/deployment-facts'
import { deepestLossBps } from '@agent-trading-service/protocol/vault-track-config'
import { zeroAddress } from 'viem'
import { describe, expect, it } from 'vitest'
import { vaults } from '../../devnet/seed-config.ts'
import { checkLocks, readConfig } from '../../scripts/deploy-config.ts'
import { judgePolicies } from '../../src/doctor/judge-limits.ts'

const example = readConfig(new URL('../../scripts/deploy.example.json', import.meta.url).pathname)

describe('first-loss capital', () => {
  it('covers the deepest stop and its exit, in the example and on the embedded chain', () => {
    const tracks = [...example.vaults, ...vaults].flatMap(vault => vault.tracks)
    const locked = tracks.filter(({ risk }) => risk?.firstLossBps)
    expect(locked).toHaveLength(3)
    for (const { policy, limits, risk } of locked) {
      expect(risk?.firstLossBps).toBeGreaterThanOrEqual(deepestLossBps(policy, limits?.maxExitSlippageBps ?? 300))
    }
    expect(() => checkLocks(example)).not.toThrow()
  })

  it('counts a position without a stop as lost', () => {
    expect(deepestLossBps({ requireStopLoss: false, maxStopLossBps: 1_100n }, 300)).toBe(10_000)
    expect(deepestLossBps({ requireStopLoss: true, maxStopLossBps: 0n }, 300)).toBe(10_000)
    expect(deepestLossBps({ requireStopLoss: true, maxStopLossBps: 1_100n }, 300)).toBe(1_400)
  })

  it('is refused by the deploy script below what a position can lose', () => {
    const config = structuredClone(example)
    const [, funded] = config.vaults[0]?.tracks ?? []
    if (!funded) throw new Error('the example has no second track')
    funded.policy.maxStopLossBps = 5_000n
    expect(() => checkLocks(config)).toThrow('genesis, track 1: a position can lose 5300 bps')
    delete funded.limits
    expect(() => checkLocks(config)).toThrow('a position can lose 5300 bps')
  })

  it('is wrong in the doctor below what a position can lose, until a lock is no longer asked for', () => {
    expect(judge(1_100n, 1_400)).toEqual([])
    expect(judge(1_101n, 1_400)).toEqual([
      "A position can lose 1401 bps at its stop and to its exit's slippage; first-loss capital covers 1400 bps.",
    ])
    expect(judge(5_000n, 0)).toEqual([])
  })
})

/** Returns what is wrong with the example's funded track at these terms. */
function judge(maxStopLossBps: bigint, firstLossBps: number): string[] {
  const track = example.vaults[0]?.tracks[1]
  if (!track?.limits || !track.risk) throw new Error('the example has no second track')
  const fact: TrackFact = {
    vault: 'genesis',
    trackId: 1,
    config: { ...track.policy, vault: zeroAddress, maxStopLossBps },
    capitalMode: 1,
    policy: track.limits,
    risk: { ...track.risk, firstLossBps },
  }
  const facts = { tracks: [fact], prices: [], vaultPolicies: [] } satisfies Partial<DeploymentFacts>
  return judgePolicies(facts, false)
    .filter(({ verdict }) => verdict === 'wrong')
    .map(({ sentence }) => sentence)
}
