import { AgentStatus, MandateMode } from '@agent-trading-service/protocol/enums'
import { type Order, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import type { Domain } from '@agent-trading-service/protocol/typed-data'
import {
  type Abi,
  type Address,
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  maxUint256,
  numberToHex,
  parseAbi,
  parseEventLogs,
  type RpcLog,
  toHex,
} from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { fixedPriceVenueAbi } from '../../contracts-abi/fixed-price-venue.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { standInCode } from '../../contracts-abi/stand-in-bytecode.ts'
import { stockTokenAbi } from '../../contracts-abi/stock-token.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { ACCOUNTS, devnetAccounts } from '../../devnet/accounts.ts'
import { rpc, startAnvil } from '../../devnet/anvil.ts'
import { seed } from '../../devnet/seed.ts'
import { vaults as seededVaults, usd, usdc } from '../../devnet/seed-config.ts'
import { connect, pipelinedSender } from '../../devnet/sender.ts'
import { type Agent, OrderMachine, type State, terms } from './order-machine.ts'

// The contracts on a node that mines on request. Accounts that act have the code of the stand-in, so one transaction
// has any number of them act, and returns what each call returned.

const standInAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) returns (Result[] results)',
])

export type Call = { address: Address; data: Hex }
/** A call of an account. */
export type Act = Call & { by: Address }
export type CallResult = { success: boolean; returnData: Hex }

export type OrderChain = Awaited<ReturnType<typeof startOrderChain>>

const HUGE = usdc('1000000000')
const GAS = 16_000_000
const account = (name: string) => privateKeyToAccount(keccak256(toHex(name)))

/** Starts a node with the contracts, four agents (two on paper, two on real capital) and fresh prices. */
export async function startOrderChain() {
  const anvil = await startAnvil({ accounts: ACCOUNTS, mines: false })
  const client = connect(anvil.rpcUrl, anvil.chainId)
  const accounts = devnetAccounts()
  const { contracts, vaults, tokens: allTokens } = await seed(client, accounts)
  const tokens = [allTokens.NVDA, allTokens.TSLA] as Address[]
  const decimals = new Map(tokens.map((token, index) => [token, index === 0 ? 18 : 8]))
  const admin = contracts.Timelock as Address
  const operator = accounts.operator.address
  const keepers = [accounts.keeper.address, accounts.relayer.address] as const
  const owners = ['owner 1', 'owner 2'].map(name => account(name).address)
  const signers = ['signer 1', 'signer 2', 'signer 3'].map(account)
  const driver = account('driver').address
  const sender = accounts.payer.address

  const request = <Result = Hex>(method: string, params: unknown[]) => rpc<Result>(anvil.rpcUrl, method, params)
  const transaction = (calls: readonly ReturnType<typeof plain>[]) => ({
    from: sender,
    to: driver,
    data: encodeFunctionData({ abi: standInAbi, functionName: 'aggregate3', args: [calls] }),
    gas: numberToHex(GAS),
  })

  /** Mines one block with one transaction that makes the calls in their order; then makes reads on it. */
  async function play(time: bigint, acts: readonly (Act | Call)[], reads: readonly Call[] = []) {
    const calls = acts.map(act => ('by' in act ? delegated(act) : plain(act)))
    const hash = await request('eth_sendTransaction', [{ ...transaction(calls), gasPrice: '0x2540be400' }])
    await request('evm_mine', [numberToHex(time)])
    const onlyTopCall = { tracer: 'callTracer', tracerConfig: { onlyTopCall: true } }
    const [{ output }, { status, logs }, read] = await Promise.all([
      request<{ output: Hex }>('debug_traceTransaction', [hash, onlyTopCall]),
      request<{ status: Hex; logs: RpcLog[] }>('eth_getTransactionReceipt', [hash]),
      request('eth_call', [transaction(reads.map(plain)), 'latest']),
    ])
    if (status !== '0x1') throw new Error(`A block of ${acts.length} calls failed.`)
    return {
      results: resultsOf(output).map((result, index) => ('by' in (acts[index] as Act) ? innerResult(result) : result)),
      reads: resultsOf(read),
      logs: parseEventLogs({ abi: orderBookAbi, logs }),
    }
  }

  const code = (address: Address, runtime: Hex) => request('anvil_setCode', [address, runtime])
  for (const address of [
    driver,
    admin,
    operator,
    accounts.executor.address,
    accounts.priceSetter.address,
    accounts.admin.address,
    accounts.depositor.address,
    ...keepers,
    ...owners,
  ])
    await code(address, standInCode)
  await code(contracts.PromotionCriteria as Address, '0x00') // accepts every promotion

  let time = (await client.getBlock()).timestamp + 1n
  async function must(acts: Act[]) {
    const { results } = await play(time++, acts)
    const failed = results.findIndex(({ success }) => !success)
    if (failed >= 0) throw new Error(`Call ${failed} of the setup failed: ${results[failed]?.returnData}`)
    return results
  }
  // Liquidity and limits that bind nobody, so that what is left to refuse is what orders depend on.
  const venue = await deployVenue()
  const by = admin
  await must([
    { by, ...callOf(contracts.TradeRouter, tradeRouterAbi, 'setSwapAdapter', [venue]) },
    { by, ...callOf(contracts.TradeRouter, tradeRouterAbi, 'setKeeperBounty', [terms.bountyBps, terms.maxBountyUsdc]) },
    ...tokens.flatMap(token => [
      {
        by,
        ...callOf(contracts.PriceOracle, priceOracleAbi, 'setAssetConfig', [
          token,
          { maxAge: Number(terms.maxPriceAge), maxDeviationBps: 0, deviationWindow: 0 },
        ]),
      },
      { by: accounts.admin.address, ...callOf(token, stockTokenAbi, 'mint', [venue, 10n ** 30n]) },
    ]),
    ...[venue, accounts.depositor.address].map(to => ({
      by: accounts.admin.address,
      ...callOf(contracts.USDC, usdcTokenAbi, 'mint', [to, HUGE]),
    })),
  ])
  for (const { slug, tracks } of seededVaults) {
    const vault = vaults[slug] as Address
    await must([
      { by: accounts.depositor.address, ...callOf(contracts.USDC, usdcTokenAbi, 'approve', [vault, maxUint256]) },
      {
        by: accounts.depositor.address,
        ...callOf(vault, mandateVaultAbi, 'deposit', [HUGE / 4n, accounts.depositor.address]),
      },
      ...tracks.flatMap(({ policy }) => [
        {
          by,
          ...callOf(contracts.VaultTrackRegistry, vaultTrackRegistryAbi, 'setVaultTrackRiskTerms', [
            vault,
            policy.trackId,
            { firstLossBps: 0, maxWasteBps: 0 },
          ]),
        },
        {
          by,
          ...callOf(contracts.VaultTrackRegistry, vaultTrackRegistryAbi, 'setVaultTrackConfig', [
            vault,
            policy.trackId,
            { ...policy, vault, ...roomy },
          ]),
        },
        {
          by,
          ...callOf(contracts.TradePolicy as Address, tradePolicyAbi, 'setLimits', [vault, policy.trackId, limits]),
        },
      ]),
    ])
  }

  const agents: Agent[] = []
  for (const [index, slug] of ['genesis', 'genesis', 'frontier', 'frontier'].entries()) {
    const [owner, signer, vault] = [owners[index % 2], signers[index % 3]?.address, vaults[slug]] as [
      Address,
      Address,
      Address,
    ]
    const args = [owner, vault, `agent ${index}`, 'https://agents.example', signer, false, 0n] as const
    const agentId = BigInt(index + 1)
    await must([
      { by: accounts.admin.address, ...callOf(contracts.USDC, usdcTokenAbi, 'mint', [operator, usdc('1')]) },
      { by: operator, ...callOf(contracts.USDC, usdcTokenAbi, 'approve', [contracts.FeeManager, maxUint256]) },
      { by: operator, ...callOf(contracts.AgentRegistry, agentRegistryAbi, 'registerAgent', args) },
    ])
    agents.push({
      agentId,
      vault,
      owner,
      signer,
      nonce: 0n,
      status: AgentStatus.Active,
      track: 0,
      capitalMode: await client.readContract({
        address: contracts.AllocationManager,
        abi: allocationManagerAbi,
        functionName: 'capitalModeOf',
        args: [agentId],
      }),
      mandate: { mode: MandateMode.Trade, maxTradeUsdc: 0n, maxExposureUsdc: 0n, allowedTokens: [], validUntil: 0n },
      closingSince: 0n,
      usedUsdc: 0n,
      bounty: { day: 0n, units: 0n },
    })
  }
  const firstPrices = [usd('180'), usd('420')]
  await must([
    {
      by: accounts.priceSetter.address,
      ...callOf(contracts.PriceOracle, priceOracleAbi, 'setPrices', [tokens, firstPrices]),
    },
    ...tokens.map((token, index) => ({
      by: driver,
      ...callOf(venue, fixedPriceVenueAbi, 'setPrice', [token, firstPrices[index]]),
    })),
  ])
  const rounds = await Promise.all(
    tokens.map(token =>
      client.readContract({
        address: contracts.PriceOracle,
        abi: priceOracleAbi,
        functionName: 'peekPrice',
        args: [token],
      }),
    ),
  )
  const state: State = {
    time,
    isRegistryPaused: false,
    pausedVaults: new Set(),
    prices: new Map(tokens.map((token, index) => [token, priceOf(rounds[index] as readonly [bigint, bigint, bigint])])),
    venue: new Map(tokens.map((token, index) => [token, firstPrices[index] as bigint])),
    agents: new Map(agents.map(agent => [agent.agentId, agent])),
    positions: new Map(),
    orders: new Map(),
    latestOfKey: new Map(),
  }
  const domainOf = (name: string, verifyingContract: Address): Domain => ({
    name,
    version: '1',
    chainId: BigInt(anvil.chainId),
    verifyingContract,
  })
  const bookDomain = domainOf('Service OrderBook', contracts.OrderBook as Address)
  const ids = new WeakMap<Order, Hex>()
  /** Hashes an order once. */
  function idOf(order: Order): Hex {
    const id = ids.get(order) ?? orderIdOf(bookDomain, order)
    ids.set(order, id)
    return id
  }

  return {
    contracts: {
      ...contracts,
      OrderBook: contracts.OrderBook as Address,
      OwnerControls: contracts.OwnerControls as Address,
      venue,
    },
    tokens,
    vaults: [vaults.genesis, vaults.frontier] as Address[],
    actors: {
      admin,
      operator,
      executor: accounts.executor.address,
      priceSetter: accounts.priceSetter.address,
      keepers,
      owners,
    },
    signers,
    domains: { book: bookDomain, router: domainOf('Service TradeRouter', contracts.TradeRouter) },
    /** Returns the reference machine, in the state that the chain has now. */
    machine: () => new OrderMachine(structuredClone(state), decimals, idOf),
    play,
    snapshot: () => request('evm_snapshot', []),
    revert: (id: Hex) => request('evm_revert', [id]),
    stop: anvil.stop,
  }

  async function deployVenue(): Promise<Address> {
    const deployer = pipelinedSender(client, accounts.agents[1]?.address as Address)
    const address = await deployer.deploy({ name: 'FixedPriceVenue', abi: fixedPriceVenueAbi, args: [contracts.USDC] })
    await deployer.settle()
    time = (await client.getBlock()).timestamp + 1n
    return address
  }
}

const roomy = {
  initialAllocation: HUGE / 100n,
  maxAllocation: HUGE / 100n,
  maxDrawdownBps: 0n,
  maxTradeSizeBps: 10_000n,
  maxDailyTurnoverBps: 0n,
  maxDailyLossBps: 0n,
  maxStopLossBps: 0n,
  minTakeProfitBps: 0n,
  maxTakeProfitBps: 0n,
  requireStopLoss: false,
  requireTakeProfit: false,
}
const limits = {
  maxEntrySlippageBps: Number(terms.maxEntrySlippageBps),
  maxExitSlippageBps: Number(terms.maxExitSlippageBps),
  exitSlippageStartBps: Number(terms.exitSlippageStartBps),
  exitWideningSeconds: Number(terms.exitWideningSeconds),
  minTradeUsdc: terms.minTradeUsdc,
  maxSpotDeviationBps: Number(terms.maxSpotDeviationBps),
  maxTwapDeviationBps: 0,
  twapWindow: 0,
  maxDeadlineSeconds: Number(terms.maxDeadlineSeconds),
}

export function callOf(address: Address, abi: Abi, functionName: string, args: readonly unknown[]): Call {
  return { address, data: encodeFunctionData({ abi, functionName, args } as never) }
}

const plain = ({ address, data }: Call) => ({ target: address, allowFailure: true, callData: data })

const delegated = ({ by, ...call }: Act) => ({
  target: by,
  allowFailure: true,
  callData: encodeFunctionData({ abi: standInAbi, functionName: 'aggregate3', args: [[plain(call)]] }),
})

const resultsOf = (output: Hex): readonly CallResult[] =>
  decodeFunctionResult({ abi: standInAbi, functionName: 'aggregate3', data: output })

function innerResult({ success, returnData }: CallResult): CallResult {
  if (!success) throw new Error(`An account could not act: ${returnData}`)
  const [result] = resultsOf(returnData)
  if (result === undefined) throw new Error('An account made no call.')
  return result
}

const priceOf = ([price, observedAt, round]: readonly [bigint, bigint, bigint]) => ({ price, observedAt, round })

export type Signer = PrivateKeyAccount
