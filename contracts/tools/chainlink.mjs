// `npm run sol:chainlink`: compiles Chainlink's verifier of signed reports and its push feed as Chainlink does, and writes
// ABIs and bytecode to contracts/chainlink.json, for tests and the embedded chain. The packages come from the npm registry with
// the checksums below and are no dependencies: @chainlink/contracts brings hundreds of its own, one of them not from the registry.
// --check writes nothing and exits with code 1 if the committed file differs.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const checksums = {
  '@chainlink/contracts@1.5.0':
    'sha512-1fGJwjvivqAxvVOTqZUEXGR54CATtg0vjcXgSIk4Cfoad2nUhSG/qaWHXjLg1CkNTeOoteoxGQcpP/HiA5HsUA==',
  '@chainlink/contracts@0.8.0':
    'sha512-nUv1Uxw5Mn92wgLs2bgPYmo8hpdQ3s9jB/lcbdU0LmNOVu0hbfmouVnqwRLa28Ll50q6GczUA+eO0ikNIKLZsA==',
  '@openzeppelin/contracts@4.8.3':
    'sha512-bQHV8R9Me8IaJoJ2vPG4rXcL7seB7YVuskr4f+f5RyOStSZetwzkWtoqDMl5erkBJy0lDRUnIR2WIkPiC0GJlg==',
  'solc@0.8.19': 'sha512-yqurS3wzC4LdEvmMobODXqprV4MYJcVtinuxgrp61ac8K2zz40vXA0eSAskSHPgv8dQo7Nux39i3QBsHx4pqyA==',
  'solc@0.6.6': 'sha512-p0IO/1fRaHWKN+qR+mUivpwnBpFYD8EoFAzT8VL4lmllNwsyEO7TJJAc2QK0XUeWOYOT92NWKhDNNNLTVbHShA==',
}

// The licence of every file is MIT, unlike that of the newer package. Our own FeeManager takes registration fees, so theirs has
// another name here.
const jobs = [
  {
    source: '@chainlink/contracts@1.5.0',
    folder: 'src/v0.8',
    compiler: 'solc@0.8.19',
    settings: { evmVersion: 'paris', metadata: { bytecodeHash: 'none', appendCBOR: false } },
    contracts: {
      VerifierProxy: 'llo-feeds/v0.5.0/VerifierProxy.sol',
      Verifier: 'llo-feeds/v0.5.0/Verifier.sol',
      ReportFeeManager: 'llo-feeds/v0.5.0/FeeManager.sol',
      RewardManager: 'llo-feeds/v0.5.0/RewardManager.sol',
    },
  },
  {
    source: '@chainlink/contracts@0.8.0',
    folder: 'src/v0.6',
    compiler: 'solc@0.6.6',
    settings: { evmVersion: 'istanbul', metadata: { bytecodeHash: 'none' } },
    contracts: { EACAggregatorProxy: 'EACAggregatorProxy.sol', FluxAggregator: 'FluxAggregator.sol' },
  },
]

const root = fileURLToPath(new URL('..', import.meta.url))
const file = join(root, 'chainlink.json')
const require = createRequire(import.meta.url)

const folders = Object.fromEntries(Object.entries(checksums).map(unpack))
const text = `${JSON.stringify(Object.assign({}, ...jobs.map(compile)), null, 2)}\n`
if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('stale: contracts/chainlink.json. Run `npm run sol:chainlink`.')
  process.exitCode = 1
}

/** Fetches a package, compares its checksum and returns its name with the folder of its files. */
function unpack([name, checksum]) {
  const target = join(root, 'cache/chainlink', name.replaceAll('/', '-'))
  mkdirSync(target, { recursive: true })
  const [packed] = JSON.parse(run('npm', ['pack', name, '--json', '--pack-destination', target]))
  if (packed.integrity !== checksum) throw new Error(`${name} has the checksum ${packed.integrity}, not ${checksum}`)
  run('tar', ['-xzf', join(target, packed.filename), '-C', target])
  return [name, join(target, 'package')]
}

function compile({ source, folder, compiler, settings, contracts }) {
  const find = name =>
    name.startsWith('@openzeppelin/contracts@4.8.3/')
      ? join(folders['@openzeppelin/contracts@4.8.3'], name.slice('@openzeppelin/contracts@4.8.3/'.length))
      : join(folders[source], folder, name)
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(
      Object.values(contracts).map(path => [path, { content: readFileSync(find(path), 'utf8') }]),
    ),
    settings: {
      ...settings,
      optimizer: { enabled: true, runs: 1_000_000 },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
    },
  }
  const solc = require('solc/wrapper')(require(join(folders[compiler], 'soljson.js')))
  const readImport = name => ({ contents: readFileSync(find(name), 'utf8') })
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: readImport }))
  const errors = (output.errors ?? []).filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  return Object.fromEntries(
    Object.entries(contracts).map(([ours, path]) => {
      const { abi, evm } = Object.values(output.contracts[path]).at(-1)
      return [ours, { abi, bytecode: `0x${evm.bytecode.object}` }]
    }),
  )
}

function run(command, args) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  if (error) throw error
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}
