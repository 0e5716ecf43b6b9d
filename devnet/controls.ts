import {
  type Abi,
  type Address,
  BaseError,
  bytesToHex,
  type ContractFunctionName,
  ContractFunctionRevertedError,
  type EncodeFunctionDataParameters,
  encodeFunctionData,
  type Hex,
  numberToHex,
  type PublicClient,
  parseEther,
  type TransactionReceipt,
  zeroHash,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../contracts-abi/price-oracle.ts'
import { stockTokenAbi } from '../contracts-abi/stock-token.ts'
import { timelockAbi } from '../contracts-abi/timelock.ts'
import { uniswapV3FactoryAbi } from '../contracts-abi/uniswap-v3-factory.ts'
import { uniswapV3PoolAbi } from '../contracts-abi/uniswap-v3-pool.ts'
import { uniswapV3SwapAdapterAbi } from '../contracts-abi/uniswap-v3-swap-adapter.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import type { Account } from './accounts.ts'
import type { Deployment } from './deployment.ts'
import { type Market, untilFollowed } from './market-maker.ts'
import { connect, type Write } from './sender.ts'

/** A posted price in USD with 8 decimals, and the oracle role that posted it. */
export type PriceMove = { symbol: string; from: bigint; to: bigint; by: 'updater' | 'forcer'; transactionHash: Hex }

export type Controls = {
  /** Posts a price in USD, such as '120' or '0.5', and resolves once the pool trades at it. */
  setPrice(symbol: string, usd: string | number): Promise<PriceMove>
  /** Posts the current prices again with the current time, so that none of them is stale. */
  refreshPrices(): Promise<void>
  /** Gives an account USDC, in base units, and an ETH for gas. */
  fund(account: Address, usdc: bigint): Promise<void>
  /** Advances the chain's clock and returns its time in Unix seconds. */
  increaseTime(seconds: number): Promise<number>
  /**
   * Reorgs the blocks from now until the promise resolves: other blocks take their places. Returns how many were
   * removed. It restores a snapshot, because anvil loses the blocks that another process makes during `anvil_reorg`. A
   * function is called once the snapshot is taken, so all that it does is taken back.
   */
  reorg(until: Promise<unknown> | (() => Promise<unknown>)): Promise<number>
  pauseRegistry(paused: boolean): Promise<void>
  pauseTrading(vault: string, paused: boolean): Promise<void>
  pauseLiquidity(vault: string, paused: boolean): Promise<void>
  /** `status` is an `AgentStatus`. */
  setAgentStatus(agentId: bigint, status: number): Promise<void>
  /** Calls a contract as its admin: the timelock, which has no delay here, or the admin's account without one. */
  administer<const abi extends Abi, name extends ContractFunctionName<abi, 'nonpayable' | 'payable'>>(
    call: Write<abi, name>,
  ): Promise<TransactionReceipt>
  /** Sends a transaction from the account and waits for its receipt; throws if it reverts. */
  send<const abi extends Abi, name extends ContractFunctionName<abi, 'nonpayable' | 'payable'>>(
    account: Account,
    call: Write<abi, name>,
  ): Promise<TransactionReceipt>
}

/** Returns functions that control a running devnet, from any process. */
export function controls(deployment: Deployment): Controls {
  const { accounts, contracts, vaults, tokens } = deployment
  const client = connect(deployment.rpcUrl, deployment.chainId)
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi }
  const inOrder = new Map<Address, Promise<unknown>>()
  const send: Controls['send'] = (account, call) => {
    const earlier = inOrder.get(account.address) ?? Promise.resolve()
    const receipt = earlier.then(() => sendNow(client, account, call))
    inOrder.set(
      account.address,
      receipt.catch(() => {}),
    )
    return receipt
  }
  const vaultOf = (slug: string) => known(vaults, slug, 'vault')
  return {
    send,
    async administer(call) {
      if (!contracts.Timelock) return send(accounts.admin, call)
      await client.simulateContract({ ...call, account: contracts.Timelock } as never) // throws with the name of the contract's error
      const timelock = { address: contracts.Timelock, abi: timelockAbi }
      const operation = [call.address, 0n, encodeFunctionData(call as EncodeFunctionDataParameters), zeroHash] as const
      const salt = bytesToHex(crypto.getRandomValues(new Uint8Array(32)))
      await send(accounts.admin, { ...timelock, functionName: 'schedule', args: [...operation, salt, 0n] })
      return send(accounts.admin, { ...timelock, functionName: 'execute', args: [...operation, salt] })
    },
    async setPrice(symbol, price) {
      const token = known(tokens, symbol.toUpperCase(), 'token')
      const markets = await marketsOf(client, deployment, symbol.toUpperCase(), token)
      const [from] = await client.readContract({ ...oracle, functionName: 'peekPrice', args: [token] })
      const to = usdPrice(price)
      const update = { ...oracle, functionName: 'setPrice', args: [token, to] } as const
      const isForced = await client.simulateContract({ ...update, account: accounts.priceSetter.address }).then(
        () => false,
        error => {
          if (['DeviationTooLarge', 'NotUpdaterSource'].includes(errorName(error) ?? '')) return true
          throw error
        },
      )
      const { transactionHash } = isForced
        ? await send(accounts.admin, { ...oracle, functionName: 'forcePrice', args: [token, to] })
        : await send(accounts.priceSetter, update)
      for (const market of markets) await untilFollowed(client, contracts.PriceOracle, market)
      return { symbol: symbol.toUpperCase(), from, to, by: isForced ? 'forcer' : 'updater', transactionHash }
    },
    async refreshPrices() {
      const assets = Object.values(tokens)
      const held = await client.multicall({
        allowFailure: false,
        contracts: assets.map(asset => ({ ...oracle, functionName: 'peekPrice', args: [asset] }) as const),
      })
      const prices = held.map(([price]) => price)
      if (!contracts.VerifierProxy) {
        await send(accounts.priceSetter, { ...oracle, functionName: 'setPrices', args: [assets, prices] })
        return
      }
      for (const [index, asset] of assets.entries())
        await send(accounts.admin, { ...oracle, functionName: 'forcePrice', args: [asset, prices[index] ?? 0n] })
    },
    async fund(account, usdc) {
      const mint = { address: contracts.USDC, abi: usdcTokenAbi, functionName: 'mint', args: [account, usdc] } as const
      await send(accounts.admin, mint)
      const balance = await client.getBalance({ address: account })
      await rpc(client, 'anvil_setBalance', [account, numberToHex(balance + parseEther('1'))])
    },
    async increaseTime(seconds) {
      await rpc(client, 'evm_increaseTime', [seconds])
      await rpc(client, 'evm_mine', [])
      return Number((await client.getBlock()).timestamp)
    },
    async reorg(until) {
      const before = await client.getBlockNumber({ cacheTime: 0 })
      const snapshots: unknown[] = []
      while (snapshots.length < MAX_REVERTS) snapshots.push(await rpc(client, 'evm_snapshot', []))
      await (typeof until === 'function' ? until() : until)
      const after = await client.getBlockNumber({ cacheTime: 0 })
      do {
        if (snapshots.length === 0) throw new Error('anvil lost blocks during each of its reverts.')
        await rpc(client, 'evm_revert', [snapshots.pop()])
        await rpc(client, 'evm_mine', []) // ends after the block that was being mined, if any
      } while (!(await hasAllBlocks(client, before)))
      return Number(after - before)
    },
    async pauseRegistry(paused) {
      const functionName = paused ? 'pause' : 'unpause'
      await send(accounts.operator, { address: contracts.AgentRegistry, abi: agentRegistryAbi, functionName, args: [] })
    },
    async pauseTrading(vault, paused) {
      const functionName = 'setTradingPaused'
      await send(accounts.operator, { address: vaultOf(vault), abi: mandateVaultAbi, functionName, args: [paused] })
    },
    async pauseLiquidity(vault, paused) {
      const functionName = 'setLiquidityPaused'
      await send(accounts.operator, { address: vaultOf(vault), abi: mandateVaultAbi, functionName, args: [paused] })
    },
    async setAgentStatus(agentId, status) {
      const functionName = 'setAgentStatus'
      const args = [agentId, status] as const
      await send(accounts.operator, { address: contracts.AgentRegistry, abi: agentRegistryAbi, functionName, args })
    },
  }
}

const ATTEMPTS = 5
const NONCE_TAKEN = /nonce too low|already imported|underpriced/i

/** Reads the nonce again for each attempt, because a Worker or another script may send from the same account. */
async function sendNow<abi extends Abi, name extends ContractFunctionName<abi, 'nonpayable' | 'payable'>>(
  client: PublicClient,
  { privateKey }: Account,
  call: Write<abi, name>,
): Promise<TransactionReceipt> {
  const account = privateKeyToAccount(privateKey)
  await client.simulateContract({ ...call, account } as never) // throws with the name of the contract's error
  const data = encodeFunctionData(call as EncodeFunctionDataParameters)
  for (let attempt = 1; ; attempt++) {
    const nonce = await client.getTransactionCount({ address: account.address, blockTag: 'pending' })
    const serializedTransaction = await account.signTransaction({
      type: 'eip1559',
      chainId: client.chain?.id ?? 0,
      nonce,
      to: call.address,
      data,
      gas: 3_000_000n,
      maxFeePerGas: 1_000_000_000_000n,
      maxPriorityFeePerGas: 1_000_000_000n,
    })
    try {
      const hash = await client.sendRawTransaction({ serializedTransaction })
      const receipt = await client.waitForTransactionReceipt({ hash, timeout: 60_000 })
      if (receipt.status !== 'success') throw new Error(`${call.functionName} reverted in ${hash}`)
      return receipt
    } catch (error) {
      if (attempt === ATTEMPTS || !NONCE_TAKEN.test(String(error))) throw error
    }
  }
}

/** How often a reorg is tried: anvil loses blocks if it mines one by itself during a revert. */
const MAX_REVERTS = 5

/** Whether each block from the given one to the newest is there and follows the one before it. */
async function hasAllBlocks(client: PublicClient, from: bigint): Promise<boolean> {
  const newest = await client.getBlock()
  let { number, parentHash } = newest
  while (number > from) {
    const block = await client.getBlock({ blockNumber: number - 1n }).catch(() => undefined)
    if (block?.hash !== parentHash) return false
    ;({ number, parentHash } = block)
  }
  return true
}

/** Returns the pools in which a token trades; an empty one has a price that nobody moves. */
async function marketsOf(
  client: PublicClient,
  { contracts }: Deployment,
  symbol: string,
  token: Address,
): Promise<Market[]> {
  const adapter = { address: contracts.SwapAdapter, abi: uniswapV3SwapAdapterAbi, args: [token] } as const
  const factory = { address: contracts.UniswapV3Factory, abi: uniswapV3FactoryAbi, functionName: 'getPool' } as const
  const [fees, decimals] = await Promise.all([
    // An adapter of `--protocol-only` knows one pool for each token.
    client
      .readContract({ ...adapter, functionName: 'poolFeesOf' })
      .catch(async () => [await client.readContract({ ...adapter, functionName: 'poolFeeOf' })]),
    client.readContract({ address: token, abi: stockTokenAbi, functionName: 'decimals' }),
  ])
  const markets = await Promise.all(
    fees.map(async fee => {
      if (fee === 0) return []
      const pool = await client.readContract({ ...factory, args: [contracts.USDC, token, fee] })
      const liquidity = await client.readContract({ address: pool, abi: uniswapV3PoolAbi, functionName: 'liquidity' })
      return liquidity === 0n ? [] : [{ symbol, token, decimals, usdc: contracts.USDC, fee, pool }]
    }),
  )
  return markets.flat()
}

function known(addresses: Record<string, Address>, name: string, kind: string): Address {
  const address = addresses[name]
  if (!address) throw new Error(`There is no ${kind} ${name}: expected one of ${Object.keys(addresses).join(', ')}.`)
  return address
}

function errorName(error: unknown): string | undefined {
  const revert = error instanceof BaseError ? error.walk(cause => cause instanceof ContractFunctionRevertedError) : null
  return revert instanceof ContractFunctionRevertedError ? revert.data?.errorName : undefined
}

/** Parses '120', '0.5' or 120 as USD with 8 decimals; throws unless it is positive and has at most 8 decimals. */
export function usdPrice(price: string | number): bigint {
  const [, whole, decimals = ''] = /^([0-9]+)(?:\.([0-9]{1,8}))?$/.exec(String(price)) ?? []
  const value = whole === undefined ? 0n : BigInt(whole + decimals.padEnd(8, '0'))
  if (value === 0n)
    throw new Error(`${price} is not a price: expected USD with at most 8 decimals, such as 120 or 0.5.`)
  return value
}

async function rpc(client: PublicClient, method: string, params: unknown[]): Promise<unknown> {
  return client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({ method, params })
}
