// Mutation testing: changes one operator, condition or statement at a time in the contracts below and runs their tests.
// A mutant that no test notices survives; MUTANTS.md explains those. The sources stay as they are: each mutant is
// compiled in memory, and its bytecode replaces the contract's in a copy of out/, from which the tests deploy. Usage:
// node contracts/tools/mutate.mjs [--only <file name>] [--part K/N] [--line L] [--from L]; N processes share the work
// by parts.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// `contracts` are those whose bytecode a mutant changes. A group of tests runs only when the ones before it let a
// mutant survive.
const TARGETS = [
  {
    file: 'src/libraries/ExitLadder.sol',
    contracts: [
      'src/PositionManager.sol:PositionManager',
      'src/TradeRouter.sol:TradeRouter',
      'test/position/ExitLadder.t.sol:ExitLadderTest',
    ],
    tests: ['test/position/ExitLadder.t.sol', 'test/router/*.t.sol'],
  },
  {
    file: 'src/TradePolicy.sol',
    contracts: ['src/TradePolicy.sol:TradePolicy'],
    tests: ['test/policy/*.t.sol', 'test/{router,findings}/*.t.sol'],
  },
  {
    file: 'src/TradeRouter.sol',
    contracts: ['src/TradeRouter.sol:TradeRouter'],
    tests: ['test/router/*.t.sol', 'test/{policy,findings,registry,lens,position}/*.t.sol'],
  },
  ...['src/oracle/PriceSources.sol', 'src/libraries/StreamReport.sol'].map(file => ({
    file,
    contracts: ['src/PriceOracle.sol:PriceOracle'],
    tests: ['test/oracle/*.t.sol', 'test/{findings/Reports,router/CarriedPrices}.t.sol'],
  })),
  {
    file: 'src/BlockUptimeFeed.sol',
    contracts: ['src/BlockUptimeFeed.sol:BlockUptimeFeed'],
    tests: ['test/oracle/BlockUptimeFeed.t.sol'],
  },
  ...['src/OrderBook.sol', 'src/libraries/OrderParts.sol'].map(file => ({
    file,
    contracts: ['src/OrderBook.sol:OrderBook'],
    tests: ['test/orders/*.t.sol', 'test/invariants/Orders.*.t.sol'],
  })),
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

const { values } = parseArgs({
  options: {
    part: { type: 'string', default: '1/1' },
    only: { type: 'string' },
    line: { type: 'string' },
    from: { type: 'string', default: '1' },
  },
})
const [part, parts] = values.part.split('/').map(Number)
const contracts = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const solc = require('solc')
const arch = { x64: 'amd64', arm64: 'arm64' }[process.arch]
const forge = require.resolve(`@foundry-rs/forge-${process.platform}-${arch}/bin/forge`)

const workspace = mkdtempSync(join(tmpdir(), 'mutants-'))
const copy = join(workspace, 'contracts')
const unchanged = new Map()
const survivors = []
const counts = { killed: 0, survived: 0, invalid: 0 }
try {
  cpSync(contracts, copy, { recursive: true })
  symlinkSync(join(contracts, '..', 'node_modules'), join(workspace, 'node_modules'))
  if (runForge(['build']) !== 0) throw new Error('the contracts do not compile')
  for (const target of TARGETS) {
    if (values.only === undefined || target.file.endsWith(values.only)) testMutantsOf(target)
  }
} finally {
  rmSync(workspace, { recursive: true })
}
console.log(`${counts.killed} killed, ${counts.survived} survived, ${counts.invalid} did not compile`)
for (const survivor of survivors) console.log(`  ${survivor}`)

/**
 * Tests the mutants of one source that the arguments select. Afterwards, the copy holds the original bytecode again.
 */
function testMutantsOf({ file, contracts: changed, tests }) {
  const artifacts = changed.map(readArtifact)
  const source = readFileSync(join(contracts, file), 'utf8')
  if (outcomeOf(tests) === 'killed') throw new Error(`the tests of ${file} fail without a mutant`)
  for (const [index, mutant] of mutantsOf(source).entries()) {
    if (index % parts !== part % parts) continue
    if (values.line !== undefined && mutant.line !== Number(values.line)) continue
    if (mutant.line < Number(values.from)) continue
    const outcome = replaceBytecode(artifacts, file, mutant.text) ? outcomeOf(tests) : 'invalid'
    const description = `${file}:${mutant.line}:${mutant.column} ${mutant.change}`
    counts[outcome]++
    console.log(`${outcome} ${description}`)
    if (outcome === 'survived') survivors.push(description)
  }
  for (const { path, json } of artifacts) writeFileSync(path, JSON.stringify(json))
}

/** Reads what forge wrote about a contract, given as `path:name`. */
function readArtifact(contract) {
  const [file, name] = contract.split(':')
  const path = join(copy, 'out', basename(file), `${name}.json`)
  return { file, name, path, json: JSON.parse(readFileSync(path, 'utf8')) }
}

/** Returns every mutant of a source: its text, where it is, and the change. */
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
          column: match.index - source.lastIndexOf('\n', match.index),
          change: `\`${match[0].trim()}\` -> \`${replacement.trim()}\` in \`${text}\``,
        })
      }
    }
  }
  return found.sort((a, b) => a.line - b.line)
}

/**
 * Compiles the contracts with one source replaced, and writes their bytecode into the copy. Returns whether they
 * compile.
 */
function replaceBytecode(artifacts, file, text) {
  const { remappings, optimizer, evmVersion, metadata } = artifacts[0].json.metadata.settings
  const bytecode = ['evm.bytecode.object', 'evm.deployedBytecode.object']
  const outputSelection = Object.fromEntries(artifacts.map(artifact => [artifact.file, { [artifact.name]: bytecode }]))
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(
      artifacts.map(artifact => [artifact.file, { content: contentOf(artifact.file, file, text) }]),
    ),
    settings: { remappings, optimizer, evmVersion, metadata, outputSelection },
  }
  const findImport = path => ({ contents: contentOf(path, file, text) })
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: findImport }))
  if (output.errors?.some(({ severity }) => severity === 'error')) return false
  for (const { file: at, name, path, json } of artifacts) {
    const { evm } = output.contracts[at][name]
    const bytecodeOf = kind => ({ ...json[kind], object: `0x${evm[kind].object}` })
    const mutated = { ...json, bytecode: bytecodeOf('bytecode'), deployedBytecode: bytecodeOf('deployedBytecode') }
    writeFileSync(path, JSON.stringify(mutated))
  }
  return true
}

/** Returns the mutant's text for its own path, and else what the file holds. */
function contentOf(path, mutantPath, mutantText) {
  if (path === mutantPath) return mutantText
  if (!unchanged.has(path)) unchanged.set(path, readFileSync(join(contracts, path), 'utf8'))
  return unchanged.get(path)
}

/** Runs the groups of tests until one fails. */
function outcomeOf(groups) {
  const isUnnoticed = groups.every(group => runForge(['test', '--fail-fast', '--match-path', group]) === 0)
  return isUnnoticed ? 'survived' : 'killed'
}

function runForge(args) {
  const env = { ...process.env, FOUNDRY_FUZZ_RUNS: '64' }
  return spawnSync(forge, args, { cwd: copy, env, stdio: 'ignore' }).status
}
