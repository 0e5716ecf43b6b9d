import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { parseConfig } from '../../src/config/config.ts'
import { type Crowd, gasOfDay, type Honest, successOfDay } from '../support/lane-day.ts'

const { gasBudgets: limits } = parseConfig({})

// Exhausted budgets are logged.
beforeAll(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))

/** What honest senders ask for in a day. */
const honest: Honest[] = [
  { name: 'an agent', senders: 2, isYoung: false, requests: [...Array(12).fill('open'), ...Array(12).fill('reduce')] },
  { name: 'a new agent', senders: 8, isYoung: true, requests: ['open', 'open', 'reduce', 'close'] },
  { name: 'a registration', senders: 20, isYoung: true, requests: ['register'] },
  { name: 'an owner', senders: 20, isYoung: false, requests: ['stop'] },
]

const everything: Crowd['kinds'] = ['open', 'reduce', 'close', 'stop', 'mandate', 'revert', 'failure', 'register']
const crowds: Crowd[] = inject('isLong')
  ? [1, 3, 10, 30, 100, 300, 1_000].flatMap(agents =>
      [true, false].flatMap(isYoung =>
        [everything, ...everything.map(kind => [kind])].map(kinds => ({ agents, isYoung, kinds })),
      ),
    )
  : [
      { agents: 2, isYoung: true, kinds: everything },
      { agents: 10, isYoung: false, kinds: everything },
      { agents: 1_000, isYoung: false, kinds: ['open'] },
    ]

describe('at least 95 % of honest requests fit into the gas budgets during an attack of', () => {
  test.for(
    crowds.map(crowd => [`${crowd.agents} ${crowd.isYoung ? 'new' : 'old'} agents`, `${crowd.kinds}`, crowd] as const),
  )('%s that send %s', ([, , crowd]) => {
    for (const [name, part] of Object.entries(successOfDay(limits, 1, crowd, honest)))
      expect.soft(part, name).toBeGreaterThanOrEqual(0.95)
  })
})

const GAS_PRICE_GWEI = 0.01

test('docs/security.md has what a number of dollars can burn in a day', () => {
  const format = (gas: number) => (gas >= 1e9 ? `${(gas / 1e9).toFixed(1)} G` : `${Math.round(gas / 1e6)} M`)
  const rows = (inject('isLong') ? [1, 10, 100, 1_000] : [1, 10]).map(agents => {
    const gas = gasOfDay(limits, { agents, isYoung: false, kinds: ['open', 'close', 'stop', 'mandate'] })
    const ether = (gas * GAS_PRICE_GWEI) / 1e9
    return `| ${agents} | ${format(gas)} | ${ether.toFixed(4)} ETH | ${format(gas / agents)} |`
  })
  const security = readFileSync(join(import.meta.dirname, '../../docs/security.md'), 'utf8')
  const table = security.split('| dollars | gas of a day | at 0.01 gwei | gas for a dollar |\n|---|---|---|---|\n')[1]
  expect(table?.split('\n').slice(0, rows.length)).toEqual(rows)
})
