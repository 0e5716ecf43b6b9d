import type { Address } from 'viem'
import { expect, it } from 'vitest'
import { judgeCancellers, type RoleHolder } from '../../packages/cli/src/operator/role-holders.ts'

const proposer = '0x00000000000000000000000000000000000000a1'
const guardians: Address[] = [
  '0x00000000000000000000000000000000000000a2',
  '0x00000000000000000000000000000000000000a3',
]

const holder = (role: 'PROPOSER_ROLE' | 'CANCELLER_ROLE', account: Address): RoleHolder => ({
  contract: 'Timelock',
  role,
  power: role === 'PROPOSER_ROLE' ? 'timelock.proposers' : 'guardians',
  account,
})

it('the doctor finds fewer than two cancellers besides the proposers wrong, on a real chain', () => {
  const proposing = [holder('PROPOSER_ROLE', proposer), holder('CANCELLER_ROLE', proposer)]
  const verdicts = (count: number, isEmbedded = false) =>
    judgeCancellers(
      [...proposing, ...guardians.slice(0, count).map(account => holder('CANCELLER_ROLE', account))],
      isEmbedded,
    ).map(({ verdict }) => verdict)
  expect(verdicts(0)).toEqual(['wrong'])
  expect(verdicts(1)).toEqual(['wrong'])
  expect(verdicts(2)).toEqual(['ok'])
  expect(verdicts(0, true)).toEqual([])
})
