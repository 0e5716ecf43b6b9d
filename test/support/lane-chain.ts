import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesToHex, type Hex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import type { TestProject } from 'vitest/node'
import { MNEMONIC } from '../../devnet/accounts.ts'
import { anvilBinary, freePort } from '../../devnet/anvil.ts'
import { LANES_PER_FILE, laneTestFiles } from './lane-accounts.ts'

const ACCOUNTS = LANES_PER_FILE * laneTestFiles.length
/** The path of the second RPC URL, which stands for the API key in such a URL. Both URLs lead to the same node. */
const SPARE = 'spare-canary'

/**
 * Starts a chain without contracts for the tests of the lanes, which remove its blocks and empty its accounts. It mines
 * only on request, because anvil's own interval cannot be stopped.
 */
export default async function setup(project: TestProject) {
  const port = await freePort()
  const options = [
    '--port',
    `${port}`,
    '--no-mining',
    '--order',
    'fifo',
    '--mnemonic',
    MNEMONIC,
    '--accounts',
    `${ACCOUNTS}`,
  ]
  const anvil = spawn(anvilBinary(), [...options, '--prune-history', '1500', '--silent'], { stdio: 'ignore' })
  const stop = () => anvil.kill()
  process.once('exit', stop)
  const rpcUrl = `http://127.0.0.1:${port}`
  while (!(await isReady(rpcUrl))) {
    if (anvil.exitCode !== null) throw new Error(`anvil ended with ${anvil.exitCode}`)
    await sleep(20)
  }
  project.provide('laneRpcUrl', rpcUrl)
  project.provide('laneSpare', SPARE)
  project.provide('laneKeys', laneKeys())
  return async () => {
    process.off('exit', stop)
    stop()
    if (anvil.exitCode === null) await once(anvil, 'exit')
  }
}

const isReady = (rpcUrl: string) =>
  fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
  }).then(
    response => response.ok,
    () => false,
  )

/** Returns the Worker's variables for a lane on that chain. The contract addresses are never called. */
export const laneVars = (rpcUrl: string): Record<string, string> => {
  const nowhere = '0x0000000000000000000000000000000000000001'
  const names = ['AgentRegistry', 'VaultTrackRegistry', 'FeeManager', 'TokenRegistry', 'PriceOracle']
  return {
    CHAIN_ID: '31337',
    RPC_URL: `${rpcUrl},${rpcUrl}/${SPARE}`,
    DEVELOPMENT_CHAIN: 'true',
    CONTRACTS: JSON.stringify(Object.fromEntries(names.map(name => [name, nowhere]))),
    EXECUTOR_PRIVATE_KEY: laneKeys().join(','),
    INCLUSION_TIMEOUT_MS: '3000',
    GAS_PRICE_GWEI: '100,1000', // anvil begins at 1
    // A call of the tests uses 45,000 gas. Tests that are not about budgets send tasks of the service.
    GAS_BUDGET_AGENT: '400000,2400000', // an exit reserve has 200,000 a minute and 250,000 an hour
  }
}

function laneKeys(): Hex[] {
  const parent = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey()
  return Array.from({ length: ACCOUNTS }, (_, index) =>
    bytesToHex(parent.deriveChild(index).privateKey ?? new Uint8Array()),
  )
}

declare module 'vitest' {
  interface ProvidedContext {
    laneRpcUrl: string
    laneSpare: string
    laneKeys: Hex[]
  }
}
