import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  type Abi,
  type Address,
  BaseError,
  createWalletClient,
  custom,
  encodeFunctionData,
  type Hex,
  isHex,
  type PublicClient,
  zeroHash,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../contracts-abi/vault-track-registry.ts'
import { exitWith } from '../devnet/environment.ts'
import { connect } from '../devnet/sender.ts'

const HELP = `Prints an operation of the timelock: its state, whether it would succeed now, and the calldata that schedules, executes or cancels it.
  RPC_URL=… npm run timelock -- --deployment deployments/421614.json 'TradeRouter.setKeeperBounty(7, "1000000")' …
Several calls are one batch, in that order. A call is a contract or a vault's slug, a function, and JSON arguments; a contract's
name, a slug or a token's symbol stands for its address, and digits in quotes for a large number.
  --delay <seconds>   longer than the timelock's least delay
  --salt <bytes32>    tells an operation from an earlier one with the same calls
  --send <step>       sends schedule, execute or cancel with PRIVATE_KEY`

const abis: Record<string, Abi> = {
  AgentRegistry: agentRegistryAbi,
  AllocationManager: allocationManagerAbi,
  FeeManager: feeManagerAbi,
  PositionManager: positionManagerAbi,
  PriceOracle: priceOracleAbi,
  SwapAdapter: uniswapV3SwapAdapterAbi,
  Timelock: timelockAbi,
  TokenRegistry: tokenRegistryAbi,
  TradePolicy: tradePolicyAbi,
  TradeRouter: tradeRouterAbi,
  VaultTrackRegistry: vaultTrackRegistryAbi,
}
const STATES = ['not scheduled', 'waiting', 'ready', 'done']
const STEPS = ['schedule', 'execute', 'cancel'] as const

type Addresses = Record<string, Address>
type Deployment = { chainId: number; contracts: Addresses; vaults: Addresses; tokens: Addresses }
type Call = { text: string; address: Address; abi: Abi; functionName: string; args: unknown[] }

await main().catch(error => exitWith(error instanceof BaseError ? error.shortMessage : error))

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      deployment: { type: 'string' },
      delay: { type: 'string' },
      salt: { type: 'string', default: zeroHash },
      send: { type: 'string' },
      help: { type: 'boolean', default: false },
      'rpc-url': { type: 'string', default: process.env.RPC_URL ?? '' },
    },
  })
  if (values.help || positionals.length === 0) return console.log(HELP)
  if (!values.deployment || !values['rpc-url']) throw new Error('Give --deployment, and --rpc-url or RPC_URL.')
  if (!isHex(values.salt) || values.salt.length !== 66) throw new Error('--salt must be 0x and 64 hex digits.')
  const deployment = JSON.parse(readFileSync(values.deployment, 'utf8')) as Deployment
  const address = deployment.contracts.Timelock
  if (!address) throw new Error(`${values.deployment} has no timelock: its admin calls the contracts directly.`)
  const timelock = { address, abi: timelockAbi }
  const client = connect(values['rpc-url'], deployment.chainId)

  const calls = positionals.map(text => parseCall(deployment, text))
  const batch = [calls.map(call => call.address), calls.map(() => 0n), calls.map(encodeFunctionData)] as const
  const operation = [...batch, zeroHash, values.salt] as const
  const [id, minDelay] = await Promise.all([
    client.readContract({ ...timelock, functionName: 'hashOperationBatch', args: operation }),
    client.readContract({ ...timelock, functionName: 'getMinDelay' }),
  ])
  const [state, readyAt] = await Promise.all([
    client.readContract({ ...timelock, functionName: 'getOperationState', args: [id] }),
    client.readContract({ ...timelock, functionName: 'getTimestamp', args: [id] }),
  ])
  const delay = values.delay === undefined ? minDelay : BigInt(values.delay)
  const data: Record<(typeof STEPS)[number], Hex> = {
    schedule: encodeFunctionData({ ...timelock, functionName: 'scheduleBatch', args: [...operation, delay] }),
    execute: encodeFunctionData({ ...timelock, functionName: 'executeBatch', args: operation }),
    cancel: encodeFunctionData({ ...timelock, functionName: 'cancel', args: [id] }),
  }

  const due = readyAt > 1n ? `, due at ${new Date(Number(readyAt) * 1000).toISOString()}` : ''
  console.log(`operation  ${id}: ${STATES[state]}${due}`)
  for (const call of calls) console.log(`call       ${call.text}: ${await resultNow(client, address, call)}`)
  console.log(`to         ${address} (the timelock), value 0
schedule   ${data.schedule}   (a proposer; executable ${delay} s later)
execute    ${data.execute}   (an executor, or anybody if none is named)
cancel     ${data.cancel}   (a proposer)`)
  if (values.send !== undefined) await send(client, address, data, values.send)
}

/** Parses `Contract.function(…)`; throws if the deployment has no such contract or the contract no such function. */
function parseCall({ contracts, vaults, tokens }: Deployment, text: string): Call {
  const [, name = '', functionName = '', json = ''] = /^([\w-]+)\.(\w+)\((.*)\)$/s.exec(text) ?? []
  const address = contracts[name] ?? vaults[name]
  const abi = vaults[name] ? mandateVaultAbi : abis[name]
  if (!address || !abi) {
    const known = [...Object.keys(contracts).filter(contract => contract in abis), ...Object.keys(vaults)]
    throw new Error(`${text} is no call: expected Contract.function(…), with one of ${known.join(', ')}.`)
  }
  const named = { ...contracts, ...vaults, ...tokens }
  const args = JSON.parse(`[${json}]`, (_, value) => {
    if (typeof value !== 'string') return value
    return /^-?[0-9]+$/.test(value) ? BigInt(value) : (named[value] ?? value)
  }) as unknown[]
  return { text, address, abi, functionName, args }
}

/** Says whether the timelock could make the call now. Calls of a batch may depend on those before them. */
async function resultNow(client: PublicClient, timelock: Address, call: Call): Promise<string> {
  return client.simulateContract({ ...call, account: timelock }).then(
    () => 'succeeds now',
    error => {
      if (!(error instanceof BaseError)) throw error
      return `fails now: ${error.shortMessage.split('\n').join(' ')}`
    },
  )
}

async function send(client: PublicClient, to: Address, data: Record<string, Hex>, step: string): Promise<void> {
  const privateKey = process.env.PRIVATE_KEY
  if (!data[step]) throw new Error(`--send ${step}: expected one of ${STEPS.join(', ')}.`)
  if (!isHex(privateKey)) throw new Error('Set PRIVATE_KEY (0x and 64 hex digits).')
  const account = privateKeyToAccount(privateKey)
  const wallet = createWalletClient({ account, transport: custom(client) })
  await client.call({ account, to, data: data[step] })
  const hash = await wallet.sendTransaction({ chain: null, to, data: data[step] })
  const { status } = await client.waitForTransactionReceipt({ hash })
  if (status !== 'success') throw new Error(`${step} reverted in ${hash}.`)
  console.log(`sent       ${step}, transaction ${hash}`)
}
