// `npm run sol:chainlink`: compiles Chainlink's verifier of signed reports as Chainlink does, and writes ABIs and bytecode to
// contracts/chainlink.json, for tests and the embedded chain. The packages come from the npm registry with the checksums below
// and are no dependencies, because @chainlink/contracts brings hundreds of its own, one of them not from the registry.
// --check writes nothing and exits with code 1 if the committed file differs.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const packages = {
  '@chainlink/contracts@1.5.0':
    'sha512-1fGJwjvivqAxvVOTqZUEXGR54CATtg0vjcXgSIk4Cfoad2nUhSG/qaWHXjLg1CkNTeOoteoxGQcpP/HiA5HsUA==',
  '@openzeppelin/contracts@4.8.3':
    'sha512-bQHV8R9Me8IaJoJ2vPG4rXcL7seB7YVuskr4f+f5RyOStSZetwzkWtoqDMl5erkBJy0lDRUnIR2WIkPiC0GJlg==',
  'solc@0.8.19':
    'sha512-yqurS3wzC4LdEvmMobODXqprV4MYJcVtinuxgrp61ac8K2zz40vXA0eSAskSHPgv8dQo7Nux39i3QBsHx4pqyA==',
}

// The files' own licence is MIT, unlike the package's. Our own FeeManager takes registration fees, so theirs has another name.
const contracts = {
  VerifierProxy: 'VerifierProxy',
  Verifier: 'Verifier',
  ReportFeeManager: 'FeeManager',
  RewardManager: 'RewardManager',
}

const folder = fileURLToPath(new URL('..', import.meta.url))
const file = join(folder, 'chainlink.json')
const require = createRequire(import.meta.url)

const [chainlink, openzeppelin, solc] = Object.entries(packages).map(unpack)
const text = `${JSON.stringify(compile(), null, 2)}\n`
if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('stale: contracts/chainlink.json. Run `npm run sol:chainlink`.')
  process.exitCode = 1
}

/** Fetches a package, compares its checksum and returns the folder with its files. */
function unpack([name, integrity], index) {
  const target = join(folder, 'cache/chainlink', String(index))
  mkdirSync(target, { recursive: true })
  const [packed] = JSON.parse(run('npm', ['pack', name, '--json', '--pack-destination', target]))
  if (packed.integrity !== integrity) throw new Error(`${name} has the checksum ${packed.integrity}, not ${integrity}`)
  run('tar', ['-xzf', join(target, packed.filename), '-C', target])
  return join(target, 'package')
}

function compile() {
  const root = join(chainlink, 'src/v0.8')
  const pathOf = name => `llo-feeds/v0.5.0/${name}.sol`
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(Object.values(contracts).map(name => [pathOf(name), read(join(root, pathOf(name)))])),
    settings: {
      optimizer: { enabled: true, runs: 1_000_000 },
      evmVersion: 'paris',
      metadata: { bytecodeHash: 'none', appendCBOR: false },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const find = name =>
    name.startsWith('@openzeppelin/contracts@4.8.3/')
      ? join(openzeppelin, name.slice('@openzeppelin/contracts@4.8.3/'.length))
      : join(root, name)
  const wrap = require('solc/wrapper')
  const compiler = wrap(require(join(solc, 'soljson.js')))
  const output = JSON.parse(compiler.compile(JSON.stringify(input), { import: name => ({ contents: read(find(name)).content }) }))
  const errors = (output.errors ?? []).filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  return Object.fromEntries(
    Object.entries(contracts).map(([ours, name]) => {
      const { abi, evm } = output.contracts[pathOf(name)][name]
      return [ours, { abi, bytecode: `0x${evm.bytecode.object}` }]
    }),
  )
}

function read(path) {
  return { content: readFileSync(path, 'utf8') }
}

function run(command, args) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}
