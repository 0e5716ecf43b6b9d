import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { bytesToHex, type Hex } from 'viem'
import { mnemonicToAccount } from 'viem/accounts'
import type { TestProject } from 'vitest/node'
import { MNEMONIC } from '../../devnet/accounts.ts'
import { anvilBinary, freePort } from '../../devnet/anvil.ts'

const LANES = 64
/** The path of the second RPC URL, which the tests serve from the same node; it stands for the key in such a URL. */
export const SPARE = 'spare-canary'

/**
 * A chain of the lanes' own, without contracts: their tests lose its blocks and empty accounts. It mines only when the
 * tests say so, for a block time of anvil's cannot be stopped.
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
    `${LANES}`,
  ]
  const anvil = spawn(anvilBinary(), [...options, '--prune-history', '1500', '--silent'], { stdio: 'ignore' })
  const stop = () => anvil.kill()
  process.once('exit', stop)
  const rpcUrl = `http://127.0.0.1:${port}`
  while (!(await answers(rpcUrl))) {
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

const answers = (rpcUrl: string) =>
  fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
  }).then(
    response => response.ok,
    () => false,
  )

/** What a Worker needs to run a lane on that chain. No contract is called through these addresses. */
export const laneVars = (rpcUrl: string): Record<string, string> => {
  const nowhere = '0x0000000000000000000000000000000000000001'
  const names = ['AgentRegistry', 'VaultTrackRegistry', 'FeeManager', 'TokenRegistry', 'PriceOracle']
  return {
    CHAIN_ID: '31337',
    RPC_URL: `${rpcUrl},${rpcUrl}/${SPARE}`,
    CONTRACTS: JSON.stringify(Object.fromEntries(names.map(name => [name, nowhere]))),
    EXECUTOR_PRIVATE_KEY: laneKeys().join(','),
    INCLUSION_TIMEOUT_MS: '3000',
  }
}

function laneKeys(): Hex[] {
  const parent = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'/0" }).getHdKey()
  return Array.from({ length: LANES }, (_, index) =>
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
