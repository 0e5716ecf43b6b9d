import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { table } from '../../bench/results-file.ts'
import type { ProviderName } from './profiles.ts'
import type { ProviderResult } from './results.ts'

// Generates the table of providers in docs/nodes.md from test/providers/results.json. A test compares them.

/** What each profile stands for, and what to pay for there. */
const NOTES: Record<ProviderName, { provider: string; plan: string }> = {
  'alchemy-free': {
    provider: 'Alchemy, free: logs of 10 blocks, replicas, 429',
    plan: 'free while idle; pay as you go with streams, webhooks or trades, which also lifts the limit of 10 blocks',
  },
  infura: {
    provider: 'Infura: replicas, 429, no send with receipt',
    plan: 'free while idle; the smallest plan otherwise',
  },
  quicknode: {
    provider: 'QuickNode, trial: logs of 5 blocks, 429 as HTML',
    plan: 'a paid plan: 5 blocks at a time cost more calls than the rest together',
  },
  'public-arbitrum': {
    provider: 'a public node: replicas two blocks apart, 429 as HTML',
    plan: 'nothing; as a fallback, because it promises nothing',
  },
  'lagging-pool': { provider: 'a pool of replicas two blocks apart', plan: 'what the pool costs' },
  'no-overrides': {
    provider: 'a node without state overrides and traces',
    plan: 'nothing more: deploy the `ServiceReader`',
  },
  'no-batch': { provider: 'a node without batches', plan: 'nothing more; each call is one HTTP request' },
  'l1-gas-spike': { provider: 'Arbitrum while L1 is expensive', plan: 'gas: see operations.md' },
  'quiet-chain': { provider: 'a chain that makes blocks only for transactions', plan: 'nothing more' },
  'robinhood-public': {
    provider: 'the public node of Robinhood Chain: ten blocks a second, half of the log requests refused, short state',
    plan: 'nothing; as a fallback, because it promises nothing',
  },
}

const HOURS = 730
/** An assumption: providers change prices, and grant discounts. */
const DOLLARS_PER_MILLION_UNITS = 0.45
const MONTHLY_INTENTS = 10_000
const file = join(import.meta.dirname, '../../docs/nodes.md')
const [START, END] = ['<!-- providers -->\n', '<!-- /providers -->']
const figure = (value: number) => value.toLocaleString('en')
const millions = (computeUnitsPerHour: number) => `${((computeUnitsPerHour * HOURS) / 1e6).toFixed(0)} M`

/** Returns the table of results. */
export function providersTable(results: readonly ProviderResult[]): string {
  const rows = results.map(result => {
    const { profile, operations, firstTries, lost, doubled, falsehoods, perIntent } = result
    const { idleHour, holdingHour, streamingHour } = result
    return [
      `\`${profile}\`: ${NOTES[profile].provider}`,
      `${firstTries} of ${operations}`,
      `${lost + doubled + falsehoods}`,
      figure(idleHour.calls),
      figure(holdingHour.calls),
      figure(streamingHour.calls),
      `${perIntent.calls}`,
      `${perIntent.kib}`,
      `${perIntent.computeUnits}`,
      `${millions(idleHour.computeUnits)}, ${millions(holdingHour.computeUnits)}, ${millions(streamingHour.computeUnits)}`,
      NOTES[profile].plan,
    ]
  })
  const headings = [
    'profile',
    'first tries that succeeded',
    'events lost or doubled, false responses',
    'calls an hour, idle',
    'with an open position',
    'with a stream',
    'calls per intent',
    'KiB sent per intent',
    'compute units per intent',
    'compute units a month: idle, position, stream',
    'to pay for',
  ]
  return table(headings, rows)
}

/** Returns the bill of a month on Robinhood Chain: what nodes are asked, and gas. */
export function robinhoodBill(results: readonly ProviderResult[]): string {
  const result = results.find(({ profile }) => profile === 'robinhood-public')
  if (result === undefined) throw new Error('test/providers/results.json lacks robinhood-public.')
  const { idleHour, holdingHour, streamingHour, perIntent } = result
  const rowOf = (what: string, { calls, computeUnits }: ProviderResult['idleHour'], times = HOURS) => [
    what,
    figure(Math.round(calls * times)),
    `${((computeUnits * times) / 1e6).toFixed(0)} M`,
    `$${(((computeUnits * times) / 1e6) * DOLLARS_PER_MILLION_UNITS).toFixed(0)}`,
  ]
  const rows = [
    rowOf('idle', idleHour),
    rowOf('with an open position', holdingHour),
    rowOf('with a stream', streamingHour),
    rowOf(`${figure(MONTHLY_INTENTS)} intents, in addition`, perIntent, MONTHLY_INTENTS),
  ]
  const gas = JSON.parse(readFileSync(join(import.meta.dirname, '../../contracts/snapshots/RouterGas.json'), 'utf8'))
  const gasPerIntent = (Number(gas['openPosition, 3 rules']) + Number(gas['reducePosition, all'])) / 2
  const facts = readFileSync(join(import.meta.dirname, '../../chains/robinhood.toml'), 'utf8')
  const [, gwei = ''] = /expected = "([\d.]+)"/.exec(facts) ?? []
  const ether = (MONTHLY_INTENTS * gasPerIntent * Number(gwei)) / 1e9
  return [
    `A month on Robinhood Chain, from the row of its public node, which bills nothing; another provider at an assumed`,
    `$${DOLLARS_PER_MILLION_UNITS} a million compute units. ${figure(MONTHLY_INTENTS)} intents, half of them opens, burn ${ether.toFixed(2)} ETH at the expected ${gwei} gwei.`,
    `What the platform bills is in [scaling.md](scaling.md#what-it-costs).`,
    '',
    table(['', 'calls', 'compute units', 'dollars'], rows),
  ].join('\n')
}

/** Returns the page with the table of results. */
export function withProviders(page: string, results: readonly ProviderResult[]): string {
  const [from, to] = [page.indexOf(START), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error('docs/nodes.md has no part for the providers.')
  return `${page.slice(0, from)}${START}\n${providersTable(results)}\n\n${robinhoodBill(results)}\n\n${page.slice(to)}`
}

export const readOperationsPage = (): string => readFileSync(file, 'utf8')

/** Writes the table into docs/nodes.md. */
export const updateOperationsPage = (results: readonly ProviderResult[]): void =>
  writeFileSync(file, withProviders(readOperationsPage(), results))
