import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from './deploy-config.ts'
import { type Row, simulateEconomics, termsOf } from './simulate-economics.ts'

// Plays owners whom luck has promoted for a year, under the terms of scripts/deploy.example.json, and writes what they
// earn into docs/security.md.

const root = join(import.meta.dirname, '..')
const page = join(root, 'docs/security.md')
const YEARS = 40
const TABLE = /(?<=<!-- economics -->\n)[^<]*/

/** Returns the table of docs/security.md. */
export function economicsTable(): string {
  const rows = simulateEconomics(termsOf(readConfig(join(root, 'scripts/deploy.example.json'))), YEARS)
  const head =
    '| pool | moves a day | one agent earns | 50 agents earn | depositors, for each agent | loss beyond the lock |'
  return `${head}\n| --- | ---: | ---: | ---: | ---: | ---: |\n${rows.map(toLine).join('')}`
}

const usdc = (amount: number) => Math.round(amount).toLocaleString('en-US').replace(/^-0$/, '0')

function toLine({ depth, volatility, attacker, depositors, uncovered }: Row): string {
  const pool = depth === 0 ? "the owner's" : `${depth / 1e6} M`
  const cells = [
    pool,
    `${(volatility * 100).toFixed(1)} %`,
    ...[attacker, 50 * attacker, depositors, uncovered].map(usdc),
  ]
  return `| ${cells.join(' | ')} |\n`
}

if (import.meta.main) {
  const table = economicsTable()
  console.log(table)
  writeFileSync(page, readFileSync(page, 'utf8').replace(TABLE, table))
}
