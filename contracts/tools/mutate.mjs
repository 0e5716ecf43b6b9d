// Mutation testing: changes one operator, condition or statement at a time in the contracts below and runs their tests.
// A mutant that no test notices survives. Usage: node contracts/tools/mutate.mjs [--every N] [--only <file name>]
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// The second group of tests runs only when the first one lets a mutant survive.
const TARGETS = [
  { file: 'src/libraries/ExitLadder.sol', tests: ['test/position/ExitLadder.t.sol', 'test/router/*.t.sol'] },
  { file: 'src/TradePolicy.sol', tests: ['test/policy/*.t.sol', 'test/{router,findings}/*.t.sol'] },
  {
    file: 'src/TradeRouter.sol',
    tests: ['test/router/*.t.sol', 'test/{policy,findings,registry,lens,position}/*.t.sol'],
  },
]

// Each rule yields the texts that replace a match.
const RULES = [
  { pattern: / < /g, replacements: [' <= ', ' >= '] },
  { pattern: / > /g, replacements: [' >= ', ' <= '] },
  { pattern: / <= /g, replacements: [' < '] },
  { pattern: / >= /g, replacements: [' > '] },
  { pattern: / == /g, replacements: [' != '] },
  { pattern: / != /g, replacements: [' == '] },
  { pattern: / && /g, replacements: [' || '] },
  { pattern: / \|\| /g, replacements: [' && '] },
  { pattern: / \+ /g, replacements: [' - '] },
  { pattern: / - /g, replacements: [' + '] },
  { pattern: / \* /g, replacements: [' / '] },
  { pattern: / \/ /g, replacements: [' * '] },
  { pattern: /Math\.min\(/g, replacements: ['Math.max('] },
  { pattern: /Math\.max\(/g, replacements: ['Math.min('] },
  { pattern: /\bif \((?=.*\brevert\b)/g, replacements: ['if (false && '] },
  { pattern: /\breturn true;/g, replacements: ['return false;'] },
  { pattern: /\breturn false;/g, replacements: ['return true;'] },
  { pattern: /^\s+_(check|enter|book|defer|clear)\w*\(.*\);$/gm, replacements: [''] },
]

const { values } = parseArgs({ options: { every: { type: 'string', default: '1' }, only: { type: 'string' } } })
const contracts = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
const forge = require.resolve(`@foundry-rs/forge-${process.platform}-${arch}/bin/forge`)

const workspace = mkdtempSync(join(tmpdir(), 'mutants-'))
cpSync(contracts, join(workspace, 'contracts'), { recursive: true })
symlinkSync(join(contracts, '..', 'node_modules'), join(workspace, 'node_modules'))
const survivors = []
let count = 0
try {
  for (const target of TARGETS) {
    if (values.only && !target.file.endsWith(values.only)) continue
    const path = join(workspace, 'contracts', target.file)
    const source = readFileSync(path, 'utf8')
    for (const [index, mutant] of mutantsOf(source).entries()) {
      if (index % Number(values.every) !== 0) continue
      count++
      writeFileSync(path, mutant.text)
      const outcome = outcomeOf(target.tests)
      console.log(`${outcome} ${target.file}:${mutant.line} ${mutant.change}`)
      if (outcome === 'survived') survivors.push(`${target.file}:${mutant.line} ${mutant.change}`)
    }
    writeFileSync(path, source)
  }
} finally {
  rmSync(workspace, { recursive: true })
}
console.log(`${count} mutants, ${survivors.length} survived`)
for (const survivor of survivors) console.log(`  ${survivor}`)

/** Returns every mutant of a source: its text, the line, and the change. */
function mutantsOf(source) {
  const found = []
  for (const { pattern, replacements } of RULES) {
    for (const match of source.matchAll(pattern)) {
      const line = source.slice(0, match.index).split('\n').length
      const text = source.split('\n')[line - 1].trim()
      if (/^(\/\/|\/\*|\*|import|pragma|using)/.test(text)) continue
      for (const replacement of replacements) {
        found.push({
          text: source.slice(0, match.index) + replacement + source.slice(match.index + match[0].length),
          line,
          change: `\`${match[0].trim()}\` -> \`${replacement.trim()}\` in \`${text}\``,
        })
      }
    }
  }
  return found.sort((a, b) => a.line - b.line)
}

/** Runs the groups of tests until one fails: a mutant that does not compile is invalid, not killed. */
function outcomeOf(groups) {
  const options = {
    cwd: join(workspace, 'contracts'),
    encoding: 'utf8',
    env: { ...process.env, FOUNDRY_FUZZ_RUNS: '64' },
  }
  for (const tests of groups) {
    const run = spawnSync(forge, ['test', '--fail-fast', '--match-path', tests], options)
    if (run.stdout.includes('Compiler run failed') || run.stderr.includes('Compiler run failed')) return 'invalid'
    if (run.status !== 0) return 'killed'
  }
  return 'survived'
}
