import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { SuiteRoles } from '../../devnet/suite-config.ts'
import { separatePowers } from '../../devnet/suite-roles.ts'

// The row of docs/security.md that says what a key can do, for each power that a deployment gives away.
const rows = {
  'timelock.proposers': 'Timelock proposer',
  guardians: 'Guardian',
  relayer: 'Relayer',
  'operators.agentRegistry': 'Registry operator',
  'operators.allocationManager': 'Allocation operator',
  'operators.tokenRegistry': 'Token operator',
  'operators.tradeRouter': 'Router operator',
  'operators.vaults': 'Vault operator',
  registrars: 'Registrar',
  executors: 'Executor',
  oracleUpdaters: 'Oracle updater',
  oracleForcers: 'Oracle forcer',
}

it('docs/security.md says what each key can do at worst, and how soon', () => {
  const operators = { agentRegistry: [], allocationManager: [], tokenRegistry: [], tradeRouter: [], vaults: [] }
  const none: SuiteRoles = {
    timelock: { delaySeconds: 0n, proposers: [], executors: [] },
    guardians: [],
    treasury: '0x',
    relayer: '0x',
    operators,
    registrars: [],
    executors: [],
    oracleUpdaters: [],
    oracleForcers: [],
  }
  const document = readFileSync(`${import.meta.dirname}/../../docs/security.md`, 'utf8')
  expect(
    separatePowers(none)
      .map(([power]) => power)
      .sort(),
  ).toEqual(Object.keys(rows).sort())
  for (const row of Object.values(rows)) expect(document).toMatch(new RegExp(`^\\| ${row} (\\|[^|\\n]+){3}\\|$`, 'm'))
})
