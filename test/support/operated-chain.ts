import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Abi,
  type Address,
  createTestClient,
  type EncodeFunctionDataParameters,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  publicActions,
  toHex,
  walletActions,
} from 'viem'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createAtsInProcess } from './ats-in-process.ts'

export const TIMELOCK_DELAY = 518_400
/** Not the embedded chain's own id, on which limits and shared keys are not judged. */
const CHAIN_ID = 421614

export type OperatedChain = Awaited<ReturnType<typeof startOperatedChain>>

/** Starts a chain whose timelock delays by six days, as a real one does, and a way to run `ats` on it. */
export async function startOperatedChain() {
  // Most of the time is spent on waiting for blocks.
  const devnet: Devnet = await startDevnet({ chainId: CHAIN_ID, blockMs: 50 })
  const { contracts, accounts } = devnet.deployment
  const timelock = { address: contracts.Timelock ?? '0x', abi: timelockAbi } as const
  // On a real chain a second account cancels operations, in case a stolen key dismisses the first.
  const canceller = [keccak256(toHex('CANCELLER_ROLE')), accounts.treasury.address] as const
  await devnet.administer({ ...timelock, functionName: 'grantRole', args: canceller })
  await devnet.administer({ ...timelock, functionName: 'updateDelay', args: [BigInt(TIMELOCK_DELAY)] })
  // Nothing but the tests sends from now on, so that blocks can be rolled back.
  devnet.marketMaker.pause()
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions)
  const ats = createAtsInProcess({ ATS_VARS: '', ATS_URL: '' })
  for (const name of ['admin', 'operator', 'oracleUpdater', 'depositor', 'keeper'] as const)
    ats.importKey(name, accounts[name].privateKey)

  const { DEVELOPMENT_CHAIN: _, ...worker } = workerVars(devnet.deployment)
  const variables: Record<string, string> = {
    ...worker,
    START_BLOCK: '0',
    OPERATOR_SECRET: 'operator-of-the-tests',
    PRICE_PROVIDER: 'finnhub',
    GAS_PRICE_GWEI: '100,1000', // anvil begins at 1
  }

  /** Writes a vars file with changes and returns its path. */
  function varsWith(changes: Record<string, string> = {}): string {
    const path = join(ats.home, `vars-${Object.keys(changes).join('-')}`)
    const lines = Object.entries({ ...variables, ...changes }).map(([name, value]) => `${name}='${value}'\n`)
    writeFileSync(path, lines.join(''), { mode: 0o600 })
    return path
  }

  /** Calls a contract from any account, also one without a key. */
  async function sendAs<abi extends Abi>(
    account: Address,
    call: { address: Address; abi: abi; functionName: string; args: readonly unknown[] },
  ): Promise<void> {
    await node.impersonateAccount({ address: account })
    await node.setBalance({ address: account, value: 10n ** 20n })
    const data = encodeFunctionData(call as EncodeFunctionDataParameters)
    const hash: Hex = await node.sendTransaction({ account, chain: null, to: call.address, data })
    const { status } = await node.waitForTransactionReceipt({ hash, pollingInterval: 50 })
    await node.stopImpersonatingAccount({ address: account })
    if (status !== 'success') throw new Error(`${call.functionName} reverted`)
  }

  return {
    devnet,
    /** The newest block before the tests: every contract is older. */
    head: await node.getBlockNumber(),
    node,
    ats,
    varsWith,
    variables,
    sendAs,
    /**
     * Takes the chain back to a snapshot. No block is mined meanwhile: it would keep the clock where tests have put it.
     */
    async restore(snapshot: Hex) {
      await devnet.setMining(false)
      await node.revert({ id: snapshot })
      await devnet.setMining(true)
    },
    asTimelock: (call: Parameters<typeof sendAs>[1]) => sendAs(timelock.address, call),
    async stop() {
      ats.remove()
      await devnet.stop()
    },
  }
}
