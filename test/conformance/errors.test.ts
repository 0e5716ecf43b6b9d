import { Track, TriggerType } from '@agent-trading-service/protocol/enums'
import { hashExits } from '@agent-trading-service/protocol/typed-data'
import {
  type Abi,
  createTestClient,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  numberToHex,
  publicActions,
  zeroHash,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { stockIssuerAbi } from '../../contracts-abi/stock-issuer.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { Account } from '../../devnet/accounts.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import type { TrackPolicy, TradePolicyLimits } from '../../devnet/suite-config.ts'
import { errorCodes } from '../../src/errors/catalogue.ts'
import { DROPPED, type RelayOutcome, type RelayRequest } from '../../src/executor/relay-types.ts'
import { minedOrRefusal } from '../../src/intents/mined-or-refusal.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  registrationOf,
  sign,
  signedIntent,
  submit,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { signedByOwner } from '../support/owner.ts'
import { signerOfAgent } from '../support/requesters.ts'
import { appWith, callOverHttp as call, deployment, type Input, request } from '../support/surfaces.ts'

// Every error code is caused by a request, here or in the test file that is named. Codes that only an incorrectly
// deployed or administered set of contracts can cause are listed with the reason.

const { contracts, accounts, tokens } = deployment
const META = 641.75
const client = createTestClient({
  mode: 'anvil',
  transport: retryLatest(http(deployment.rpcUrl)),
  pollingInterval: 50,
}).extend(publicActions)

let trader: Trader
let positionId: string
const undo: (() => Promise<unknown>)[] = []
beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { usdcAmount: '20' })
})
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

/** The router's role for executors, and an account that gets it for these tests. */
const EXECUTOR_ROLE = '0xd8aa0f3194971a2a116679f7c2090f6939c8d4e01a2a8d7e41d55e5351469e63'
const direct = accounts.agents.at(-4) as Account

type Call = { address: Hex; abi: Abi | readonly unknown[]; functionName: string; args: readonly unknown[] }

/** Sends a call with a fixed gas limit, so that it is mined even if it reverts, and returns its code or status. */
async function codeOfTransaction(from: Account | PrivateKeyAccount, { address, ...rest }: Call): Promise<string> {
  const account = 'privateKey' in from ? privateKeyToAccount(from.privateKey) : from
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: deployment.chainId,
    nonce: await client.getTransactionCount({ address: account.address, blockTag: 'pending' }),
    to: address,
    data: encodeFunctionData(rest as never),
    gas: 2_000_000n,
    maxFeePerGas: 1_000_000_000_000n,
    maxPriorityFeePerGas: 0n,
  })
  const hash = await client.sendRawTransaction({ serializedTransaction })
  await client.waitForTransactionReceipt({ hash })
  const { body } = await call('getTransaction', { txHash: hash })
  return body.error?.code ?? body.status
}

const rules = [{ triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 10_000 }]
/** Signs an OpenPosition that the service would reject, and sends it directly to the router. */
async function openDirectly(changes: Input): Promise<string> {
  const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'AAPL', usdcAmount: '10' })
  const { message } = body.typedData
  const intent = { ...message, exitsHash: hashExits(rules), ...changes }
  const signature = await sign(trader.account, { ...body.typedData, message: intent })
  const args = [{ ...intent, exits: rules }, signature]
  return codeOfTransaction(direct, {
    address: contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'openPosition',
    args,
  })
}

/** Sends a signed registration directly to the registry. */
async function registerDirectly(changes: Input): Promise<string> {
  const account = privateKeyToAccount(generatePrivateKey())
  const { body } = await call('getRegistrationQuote', {
    signer: account.address,
    vault: GENESIS,
    name: 'a',
    metadataURI: 'b',
  })
  const message = { ...body.typedData.message, ...changes }
  const signature = await sign(account, { ...body.typedData, message })
  const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = message
  const args = [vault, name, metadataURI, signer, linkERC8004, BigInt(erc8004AgentId), BigInt(deadline), signature]
  const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi }
  return codeOfTransaction(direct, { ...registry, functionName: 'selfRegisterAgent', args })
}

/** Has the signer of the trader, who owns it too, call `OwnerControls`: an owner's own call needs no signature. */
async function callAsOwner({ account }: Trader, functionName: string, args: readonly unknown[]): Promise<string> {
  await client.setBalance({ address: account.address, value: 10n ** 19n })
  const controls = { address: contracts.OwnerControls as Hex, abi: ownerControlsAbi }
  const nonce = await client.readContract({ ...controls, functionName: 'nonces', args: [account.address] })
  return codeOfTransaction(account, { ...controls, functionName, args: [...args, nonce, 2n ** 64n, '0x'] })
}

/** Sets a mandate that differs from one that allows everything. */
const setMandate = (owned: Trader, changes: Input) => {
  const limits = { maxTradeUsdc: 0n, maxDailyTurnoverUsdc: 0n, maxExposureUsdc: 0n }
  const mandate = { mode: 0, ...limits, allowedTokens: [], validUntil: 0n, ...changes }
  return callAsOwner(owned, 'setMandate', [BigInt(owned.agentId), mandate])
}

/** Buys for 10 USDC as a new agent under a mandate. */
async function buyUnderMandate(changes: Input): Promise<string> {
  const owned = await newTrader()
  await setMandate(owned, changes)
  return code(submit(owned, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '10' }))
}

const code = async (answer: Promise<{ body: Body }>): Promise<string> => (await answer).body.code
const raw = async (path: string, init?: RequestInit) => ((await (await request(path, init)).json()) as Body).code
const post = (path: string, body: string, type = 'application/json') =>
  raw(path, { method: 'POST', headers: { 'content-type': type }, body })
const open = (input: Input = {}, changes: Input = {}) =>
  signedIntent(trader, 'submitTradeIntent', { symbol: 'AAPL', usdcAmount: '10', ...input }, changes)
const submitOpen = async (input: Input = {}, changes: Input = {}) =>
  code(call('submitTradeIntent', await open(input, changes)))

/** Returns the code of a relay outcome that only a node failure or load can cause. */
async function codeOfOutcome(outcome: RelayOutcome): Promise<string> {
  const request: RelayRequest = {
    digest: '0x00',
    kind: 'open',
    by: signerOfAgent(1),
    groupNonce: '0',
    deadline: 0n,
    call: { to: '0x00', data: '0x' },
  }
  return minedOrRefusal(request, outcome).then(
    () => 'mined',
    ({ body }) => body.code,
  )
}

/** Deletes the first storage slot in which a contract maps the token, until the end of the test. */
async function forget(address: Hex, token: Hex): Promise<void> {
  for (let slot = 0n; slot < 8n; slot++) {
    const index = keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [token, slot]))
    const value = await client.getStorageAt({ address, slot: index })
    if (value === undefined || BigInt(value) === 0n) continue
    undo.push(() => client.setStorageAt({ address, index, value }))
    return client.setStorageAt({ address, index, value: zeroHash })
  }
  throw new Error('The contract has no value for the token')
}

/** Sells a position of real capital while the issuer of its token blocks an account. */
async function sellRestricted(block: { functionName: 'setBlocked'; args: readonly [Hex, boolean] }): Promise<string> {
  const owned = await newTrader({ vault: FRONTIER })
  const id = await openPosition(owned, { symbol: 'HOOD', usdcAmount: '10' })
  const issuer = { address: contracts.StockIssuer, abi: stockIssuerAbi }
  undo.push(() => chain.send(accounts.admin, { ...issuer, ...block, args: [block.args[0], false] }))
  await chain.send(accounts.admin, { ...issuer, ...block })
  return code(submit(owned, 'submitReduceIntent', { positionId: id, exitBps: 10_000 }))
}

const without = (...names: string[]) => appWith(Object.fromEntries(names.map(name => [name, undefined])))

/** The codes that are caused here, and the request that causes them. */
const caused: Record<string, () => Promise<string>> = {
  INVALID_REQUEST: () => raw('/agents/0'),
  MALFORMED_JSON: () => post('/agents/register', '{'),
  UNSUPPORTED_CONTENT_TYPE: () => post('/agents/register', '{}', 'text/plain'),
  UNSUPPORTED_CONTENT_ENCODING: () =>
    raw('/agents/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: '{}',
    }),
  BODY_TOO_LARGE: () => post('/agents/register', `"${'x'.repeat(110_000)}"`),
  UNKNOWN_PATH: () => raw('/nowhere'),
  METHOD_NOT_ALLOWED: () => raw('/vaults', { method: 'DELETE' }),
  UNKNOWN_SYMBOL: () => code(call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NOPE' })),
  AGENT_NOT_FOUND: () => code(call('getAgent', { agentId: '999999' })),
  FEEDBACK_NOT_FOUND: () => code(call('getFeedbackFile', { agentId: '999999', weekStart: '345600' })),
  NO_AGENT_FOR_ERC8004: () => code(call('getAgentByErc8004', { erc8004AgentId: '999999' })),
  VAULT_NOT_FOUND: () => code(call('getVault', { id: 'nowhere' })),
  POSITION_NOT_FOUND: () => code(call('getPosition', { agentId: trader.agentId, positionId: '999999' })),
  INTENT_NOT_FOUND: () => code(call('getIntent', { digest: `0x${'ab'.repeat(32)}` })),
  TRANSACTION_NOT_FOUND: () => code(call('getTransaction', { txHash: `0x${'ab'.repeat(32)}` })),
  EXPIRED_DEADLINE: () => submitOpen({ deadline: '1' }),
  DEADLINE_IN_MILLISECONDS: () => submitOpen({ deadline: `${Date.now() + 600_000}` }),
  INVALID_SIGNATURE: () => submitOpen({}, { usdcAmount: '11' }),
  INVALID_AMOUNT: () => submitOpen({}, { usdcAmount: '0.0000001' }),
  INVALID_EXIT_RULES: () => submitOpen({}, { exits: [{ triggerBps: -800, exitBps: 1 }] }),
  TOKEN_NOT_ALLOWED: () => submitOpen({ symbol: 'COIN' }),
  POSITION_ALREADY_OPEN: () => submitOpen({ symbol: 'NVDA' }),
  NONCE_IN_FLIGHT: async () => {
    const bodies = await Promise.all([open(), open({ usdcAmount: '11' })])
    // The transaction of one body is sent once the other body has its response.
    let isAnswered = false
    const { fetch } = globalThis
    const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const isSend = `${init?.body}`.includes('eth_sendRawTransaction')
      if (isSend) await vi.waitUntil(() => isAnswered, { timeout: 60_000, interval: 10 })
      return fetch(input, init)
    })
    undo.push(async () => spy.mockRestore())
    const answers = bodies.map(body => call('submitTradeIntent', body))
    const first = await Promise.race(answers)
    isAnswered = true
    expect((await Promise.all(answers)).map(({ status }) => status)).toContain(201)
    return first.body.code
  },
  EXECUTOR_OUT_OF_FUNDS: async () => {
    const { address } = accounts.executor
    const value = await client.getBalance({ address })
    await client.setBalance({ address, value: 0n })
    undo.push(() => client.setBalance({ address, value }))
    // Some nodes simulate for an empty account too: then the balance that the lane has read decides.
    const app = appWith({ OPERATOR_SECRET: 'operator' })
    const headers = { authorization: 'Bearer operator' }
    const readiness = async () => (await (await request('/health/ready', { headers }, app)).json()) as Body
    await expect.poll(async () => (await readiness()).executor.lanes[0].balanceWei).toBe('0')
    return submitOpen({ symbol: 'TSLA' })
  },
  CHAIN_UNREACHABLE: () => code(call('listVaults', {}, appWith({ RPC_URL: 'http://127.0.0.1:1' }))),
  NODES_BEHIND: async () => {
    // How far ahead a block may be depends on the pace of the last hundred.
    await client.mine({ blocks: 128, interval: 0 })
    const headers = { 'min-block': `${(await client.getBlockNumber()) + 60n}` }
    return (await (await request('/agents/1', { headers })).json<Body>()).code
  },
  MIN_BLOCK_AHEAD: async () =>
    (await (await request('/agents/1', { headers: { 'min-block': `${2n ** 64n}` } })).json<Body>()).code,
  CHAIN_NOT_CONFIGURED: () => code(call('listVaults', {}, without('CHAIN_ID'))),
  EXECUTOR_NOT_CONFIGURED: async () => code(call('submitTradeIntent', await open(), without('EXECUTOR_PRIVATE_KEY'))),
  PRICE_PROVIDER_NOT_CONFIGURED: () => code(call('refreshPrices', {}, without('PRICE_PROVIDER'))),
  PRICE_UPDATER_NOT_CONFIGURED: () => {
    const changes = { PRICE_PROVIDER: 'finnhub', ORACLE_UPDATER_PRIVATE_KEY: undefined }
    return code(call('refreshPrices', {}, appWith(changes)))
  },
  PRICE_PROVIDER_FAILED: () => {
    const app = appWith({ PRICE_PROVIDER: 'http', PRICE_PROVIDER_URL: 'http://127.0.0.1:1' })
    return code(call('refreshPrices', {}, app))
  },
  RATE_LIMITED: async () => {
    const headers = { 'cf-connecting-ip': '192.0.2.99' }
    const post = () => request('/agents/register', { method: 'POST', headers })
    let refused = await post()
    // Windows begin with the minutes of the clock: if one begins here, it takes as many requests again.
    for (let posted = 1; posted <= 240 && refused.status !== 429; posted++) refused = await post()
    expect(refused.headers.get('RateLimit-Policy')).toBe('"registrations";q=120;w=60')
    expect(refused.headers.get('RateLimit')).toMatch(/^"registrations";r=0;t=([1-9]|[1-5][0-9]|60)$/)
    return (await refused.json<Body>()).code
  },
  INTAKE_CLOSED: async () => {
    const app = appWith({ OPERATOR_SECRET: 'operator' })
    const put = (change: object) =>
      request(
        '/operator/intake',
        {
          method: 'PUT',
          headers: { 'content-type': 'application/json', authorization: 'Bearer operator' },
          body: JSON.stringify({ priceRefreshes: change }),
        },
        app,
      )
    await put({ open: false, reason: 'The feed is wrong.' })
    const refused = await code(call('refreshPrices', {}, app))
    await put({ open: true })
    return refused
  },
  INTAKE_SWITCHES_UNREACHABLE: async () => {
    const broken = { getByName: () => ({ change: () => Promise.reject(new Error()) }) }
    const app = appWith({ OPERATOR_SECRET: 'operator' }, { INTAKE_SWITCHES: broken as never })
    const headers = { 'content-type': 'application/json', authorization: 'Bearer operator' }
    const refused = await request('/operator/intake', { method: 'PUT', headers, body: '{}' }, app)
    return (await refused.json<Body>()).code
  },
  OPERATOR_NOT_CONFIGURED: () => code(call('getIntake')),
  OPERATOR_ONLY: () => code(call('getIntake', {}, appWith({ OPERATOR_SECRET: 'operator' }))),
  LANE_NOT_FOUND: async () => {
    const app = appWith({ OPERATOR_SECRET: 'operator' })
    const headers = { authorization: 'Bearer operator' }
    const refused = await request(`/operator/lanes/${contracts.USDC}/resume`, { method: 'POST', headers }, app)
    return (await refused.json<Body>()).code
  },
  PRICE_REFRESH_DISABLED: () => code(call('refreshPrices', {}, appWith({ CHAIN_ID: '42161' }))),
  UNAUTHORIZED: () => code(call('refreshPrices', {}, appWith({ PRICE_REFRESH_SECRET: 'secret' }))),
  NOT_READY: () => code(call('getReadiness', {}, without('EXECUTOR_PRIVATE_KEY'))),
  INTERNAL: () => {
    const changed = { ...contracts, FeeManager: contracts.PriceOracle }
    return code(call('getRegistrationQuote', {}, appWith({ CONTRACTS: JSON.stringify(changed) })))
  },
  // Outcomes that need a failing node or load: the tests of the lane cause them, these tests only check their codes.
  SUBMISSION_REVERTED: () => codeOfOutcome({ state: 'reverted', hash: '0x00' }),
  SUBMISSION_UNKNOWN: () => codeOfOutcome({ state: 'unknown' }),
  SUBMISSION_FAILED: () => codeOfOutcome({ state: 'unsent' }),
  TRANSACTION_DROPPED: () => codeOfOutcome({ state: 'rejected', message: DROPPED }),
  EXECUTOR_PAUSED: () => codeOfOutcome({ state: 'paused', retryAfterSeconds: 1 }),
  EXECUTOR_BUSY: () => codeOfOutcome({ state: 'busy', retryAfterSeconds: 1 }),
  GAS_BUDGET_EXHAUSTED: () =>
    codeOfOutcome({
      state: 'exhausted',
      shortage: { budget: 'agent', window: 'minute', limitGas: 100, leftGas: 1, retryAfterSeconds: 9 },
    }),
  GAS_PRICE_TOO_HIGH: () => codeOfOutcome({ state: 'costly', gasPriceWei: 2n, maxGasPriceWei: 1n }),
  TOO_MANY_REVERTS: () => codeOfOutcome({ state: 'busy', retryAfterSeconds: 600, why: 'reverts' }),
  EXECUTOR_UNREACHABLE: () => {
    const broken = {
      idFromName: () => ({}),
      get: () => ({ find: () => Promise.reject(new Error()) }),
    }
    const app = appWith({}, { EXECUTOR_LANE: broken as unknown as Env['EXECUTOR_LANE'] })
    return code(call('getIntent', { digest: `0x${'ab'.repeat(32)}` }, app))
  },
  INTENT_REFUSED: () => codeOfOutcome({ state: 'rejected', data: '0xdeadbeef' }),
  // The service checks these first, so only a transaction that is sent directly gets the contract error.
  VAULT_MISMATCH: () => openDirectly({ vault: FRONTIER }),
  INVALID_TRADE_AMOUNT: () => openDirectly({ usdcAmount: '0' }),
  BPS_OUT_OF_RANGE: () => openDirectly({ maxSlippageBps: 10_001 }),
  INVALID_NONCE: () => openDirectly({ nonce: '999' }),
  INVALID_NAME: () => registerDirectly({ name: 'n'.repeat(129) }),
  INVALID_METADATA_URI: () => registerDirectly({ metadataURI: '' }),
  ERC8004_ID_WITHOUT_LINK: () => registerDirectly({ erc8004AgentId: '1' }),
  VAULT_NOT_REGISTERED: () => registerDirectly({ vault: contracts.USDC }),
  ENFORCED_PAUSE: async () => {
    await chain.pauseRegistry(true)
    undo.push(() => chain.pauseRegistry(false))
    return registerDirectly({})
  },
  REGISTRATION_PAUSED: async () => {
    const body = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    await chain.pauseRegistry(true)
    undo.push(() => chain.pauseRegistry(false))
    return code(call('registerAgent', body, appWith({ X402_ENABLED: 'false' })))
  },
  AGENT_NOT_SUSPENDED: () =>
    codeOfTransaction(accounts.operator, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'forceClose',
      args: [BigInt(positionId)],
    }),
  TRIGGER_NOT_MET: () =>
    codeOfTransaction(accounts.keeper, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'executeExit',
      args: [BigInt(positionId)],
    }),
  NOT_OWNER_OR_SIGNER: () =>
    codeOfTransaction(accounts.keeper, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'cancelNonce',
      args: [BigInt(trader.agentId), 0n],
    }),
  MANDATE_STOPS_BUYING: () => buyUnderMandate({ mode: 1 }),
  TOKEN_OUTSIDE_MANDATE: () => buyUnderMandate({ allowedTokens: [tokens.NVDA] }),
  EXCEEDS_MANDATE_TRADE: () => buyUnderMandate({ maxTradeUsdc: 9_999_999n }),
  EXCEEDS_MANDATE_TURNOVER: () => buyUnderMandate({ maxDailyTurnoverUsdc: 9_999_999n }),
  EXCEEDS_MANDATE_EXPOSURE: () => buyUnderMandate({ maxExposureUsdc: 9_999_999n }),
  MANDATE_FORBIDS_LOOSER_LADDER: async () => {
    const owned = await newTrader()
    const id = await openPosition(owned, { exits: '-500:10000' })
    await setMandate(owned, { mode: 2 })
    return code(submit(owned, 'submitExitLadderIntent', { positionId: id, exits: '-600:10000' }))
  },
  MANDATE_OUT_OF_RANGE: async () => setMandate(await newTrader(), { mode: 3 }),
  NO_AGENTS: async () => callAsOwner(await newTrader(), 'closeAll', [[]]),
  MESSAGE_ALREADY_USED: async () => {
    const { agentId, account } = await newTrader()
    const { nonce, deadline, signature } = await signedByOwner(account, 'stopAgent', { agentId, action: 'reduceOnly' })
    const stop = {
      address: contracts.OwnerControls as Hex,
      abi: ownerControlsAbi,
      functionName: 'stopBuying',
      args: [[BigInt(agentId)], BigInt(`${nonce}`), BigInt(`${deadline}`), signature],
    }
    await codeOfTransaction(accounts.keeper, stop)
    return codeOfTransaction(accounts.keeper, stop)
  },
  NO_OWNERSHIP_OFFER: async () => {
    const owned = await newTrader()
    return callAsOwner(owned, 'acceptOwnership', [BigInt(owned.agentId), owned.account.address])
  },
  INVALID_CANCELLATION: async () => {
    const owned = await newTrader()
    return callAsOwner(owned, 'cancelIntents', [BigInt(owned.agentId), 65n])
  },
  ONLY_OWNER_CONTROLS: () =>
    codeOfTransaction(accounts.keeper, {
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'setMandateState',
      args: [BigInt(trader.agentId), 0n],
    }),
  OWNER_IS_SIGNER: () => {
    const { address } = accounts.keeper
    const registration = {
      owner: address,
      vault: GENESIS,
      name: 'a',
      metadataURI: 'b',
      signer: address,
      linkERC8004: false,
      erc8004AgentId: 0n,
    }
    return codeOfTransaction(accounts.keeper, {
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'registerOwnedAgent',
      args: [registration, 2n ** 64n, '0x', { nonce: 0n, deadline: 0n, signature: '0x' }],
    })
  },
  TOO_FEW_TRADES: () =>
    codeOfTransaction(accounts.keeper, {
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'promoteAgent',
      args: [BigInt(trader.agentId), Track.Funded],
    }),
  SLIPPAGE_ABOVE_LIMIT: () => submitOpen({ symbol: 'AMZN', maxSlippageBps: '101' }),
  TRADE_TOO_SMALL: () => submitOpen({ symbol: 'AMZN', usdcAmount: '0.5' }),
  DEADLINE_TOO_FAR: async () => {
    await changeLimits({ maxDeadlineSeconds: 600 })
    return submitOpen({ symbol: 'AMZN', deadline: `${(await chainTime()) + 3600n}` })
  },
  TWAP_DEVIATION: async () => {
    await chain.increaseTime(60) // the average reaches back to the price before
    await changeLimits({ maxTwapDeviationBps: 1, twapWindow: 50 })
    await chain.setPrice('META', 700)
    undo.push(() => chain.setPrice('META', META))
    return submitOpen({ symbol: 'META' })
  },
  PARTIAL_FILL: async () => {
    const address = await client.readContract({
      address: contracts.SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'poolOf',
      args: [tokens.COST as Hex],
    })
    const index = numberToHex(4, { size: 32 }) // the pool's liquidity at its present price
    const value = await client.getStorageAt({ address, slot: index })
    undo.push(() => client.setStorageAt({ address, index, value: value ?? zeroHash }))
    await client.setStorageAt({ address, index, value: zeroHash })
    return submitOpen({ symbol: 'COST' })
  },
  TOKEN_RESTRICTED: () => sellRestricted({ functionName: 'setBlocked', args: [contracts.SwapAdapter, true] }),
  POOL_NOT_PAID: async () => {
    const pool = await client.readContract({
      address: contracts.SwapAdapter,
      abi: uniswapV3SwapAdapterAbi,
      functionName: 'poolOf',
      args: [tokens.HOOD as Hex],
    })
    return sellRestricted({ functionName: 'setBlocked', args: [pool, true] })
  },
  EXIT_FLOOR_NOT_MET: async () => {
    const id = await openPosition(await newTrader(), { symbol: 'COST', usdcAmount: '90', exits: '-500:10000' })
    // The pool's fee alone is 0.3 %.
    await changeLimits({ exitSlippageStartBps: 20, exitWideningSeconds: 86_400 })
    await chain.setPrice('COST', 829)
    undo.push(() => chain.setPrice('COST', 921.5))
    const fire = () =>
      codeOfTransaction(accounts.keeper, {
        address: contracts.TradeRouter,
        abi: tradeRouterAbi,
        functionName: 'executeExit',
        args: [BigInt(id)],
      })
    await fire() // records that the exit is due
    return fire()
  },
  EXCEEDS_MAX_DRAWDOWN: async () => {
    const loser = await newTrader()
    const id = await openPosition(loser, { symbol: 'MSFT', usdcAmount: '5000' })
    await submit(loser, 'submitReduceIntent', { positionId: id, exitBps: '10000' })
    await changeTrack({ maxDrawdownBps: 1n })
    return code(
      call('submitTradeIntent', await signedIntent(loser, 'submitTradeIntent', { symbol: 'MSFT', usdcAmount: '10' })),
    )
  },
  EXCEEDS_WASTE: buyAfterWaste,
  INSUFFICIENT_SHARES: async () => {
    const owned = await newTrader()
    return callAsOwner(owned, 'lockFirstLoss', [BigInt(owned.agentId), 1n])
  },
  CAPS_EXCEED_ASSETS: async () => {
    const body = await registrationOf(privateKeyToAccount(generatePrivateKey()), { vault: FRONTIER })
    await changeTrack({ initialAllocation: 10n ** 12n, maxAllocation: 10n ** 12n }, FRONTIER)
    return code(call('registerAgent', body, appWith({ X402_ENABLED: 'false' })))
  },
  INVALID_PRICE: () => setPrice(0n),
  DEVIATION_TOO_LARGE: () => setPrice(10n ** 15n),
  TOKEN_NOT_QUOTED: async () => {
    const body = await open({ symbol: 'TSLA' })
    await forget(contracts.PriceOracle, tokens.TSLA as Hex)
    return code(call('submitTradeIntent', body))
  },
  POOL_NOT_CONFIGURED: async () => {
    const body = await open({ symbol: 'TSLA' })
    await forget(contracts.SwapAdapter, tokens.TSLA as Hex)
    return code(call('submitTradeIntent', body))
  },
}

const setPrice = (price: bigint) =>
  codeOfTransaction(accounts.priceSetter, {
    address: contracts.PriceOracle,
    abi: priceOracleAbi,
    functionName: 'setPrice',
    args: [tokens.NVDA, price],
  })

const chainTime = async () => (await client.getBlock()).timestamp

/** Changes limits of the genesis vault's first track until the end of the test. */
async function changeLimits(changes: Partial<TradePolicyLimits>): Promise<void> {
  const policy = { address: contracts.TradePolicy as Hex, abi: tradePolicyAbi } as const
  const limits = await client.readContract({ ...policy, functionName: 'limitsOf', args: [GENESIS, 0n] })
  const set = (to: TradePolicyLimits) =>
    chain.administer({ ...policy, functionName: 'setLimits', args: [GENESIS, 0n, to] })
  undo.push(() => set(limits))
  await set({ ...limits, ...changes })
}

/** Buys after a round trip in the thin pool that lost more than the least bound of waste. */
async function buyAfterWaste() {
  const trader = await newTrader()
  const positionId = await openPosition(trader, { symbol: 'COST', usdcAmount: '120' })
  await submit(trader, 'submitReduceIntent', { positionId, exitBps: '10000' })
  const registry = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const terms = await client.readContract({ ...registry, functionName: 'riskTermsOf', args: [GENESIS, 0n] })
  const set = (to: typeof terms) =>
    chain.administer({ ...registry, functionName: 'setVaultTrackRiskTerms', args: [GENESIS, 0n, to] })
  undo.push(() => set(terms))
  await set({ ...terms, maxWasteBps: 1 })
  const intent = { symbol: 'AAPL', usdcAmount: '10' }
  return code(call('submitTradeIntent', await signedIntent(trader, 'submitTradeIntent', intent)))
}

/** Changes the configuration of a vault's first track until the end of the test. */
async function changeTrack(changes: Partial<TrackPolicy>, vault = GENESIS): Promise<void> {
  const registry = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const config = await client.readContract({ ...registry, functionName: 'getVaultTrackConfig', args: [vault, 0n] })
  const set = (to: typeof config) =>
    chain.administer({ ...registry, functionName: 'setVaultTrackConfig', args: [vault, 0n, to] })
  undo.push(() => set(config))
  await set({ ...config, ...changes })
}

/** The codes that another test file causes, by file. */
const elsewhere: Record<string, readonly string[]> = {
  'unit/rate-limit-bursts.test.ts': ['BODY_TOO_SLOW'],
  'integration/refusals.test.ts': [
    'AGENT_NOT_TRADABLE',
    'ALLOCATION_NOT_ACTIVE',
    'EXCEEDS_ALLOCATION_CAP',
    'EXCEEDS_DAILY_LOSS',
    'EXCEEDS_DAILY_TURNOVER',
    'EXCEEDS_MAX_TRADE_SIZE',
    'EXIT_RULES_OUT_OF_BOUNDS',
    'INSUFFICIENT_IDLE_ASSETS',
    'INVALID_ERC8004_LINK',
    'INVALID_REDUCE_AMOUNT',
    'PENDING_RULE_ALREADY_TRIGGERED',
    'POSITION_AGENT_MISMATCH',
    'POSITION_NOT_OPEN',
    'REGISTRY_PAUSED',
    'RELAYER_NOT_CONFIGURED',
    'SEQUENCER_DOWN',
    'SEQUENCER_GRACE_PERIOD',
    'SLIPPAGE_EXCEEDED',
    'STALE_PRICE',
    'TOO_MANY_EXIT_RULES',
    'TRADING_NOT_CONFIGURED',
    'TRADING_PAUSED',
    'VAULT_TRACK_NOT_ACTIVE',
  ],
  'integration/keeper-corporate-actions.test.ts': ['PRICE_UNSETTLED'],
  'integration/webhooks.test.ts': [
    'TOO_MANY_WEBHOOKS',
    'TOO_MANY_WEBHOOK_MESSAGES',
    'WEBHOOKS_FULL',
    'WEBHOOKS_NOT_CONFIGURED',
    'WEBHOOKS_UNAVAILABLE',
    'WEBHOOK_DEADLINE_TOO_FAR',
    'WEBHOOK_NOT_FOUND',
    'WEBHOOK_URL_REFUSED',
  ],
  'integration/protocol-only.test.ts': ['ORDER_BOOK_NOT_SET', 'WHAT_IF_UNAVAILABLE'],
  'integration/orders.test.ts': [
    'INVALID_ORDER',
    'TOO_MANY_OPEN_ORDERS',
    'ORDER_NOT_FOUND',
    'ORDER_NOT_OPEN',
    'ORDER_NOT_DUE',
    'CONDITION_NOT_MET',
    'STOP_ABOVE_PRICE',
  ],
  'integration/checks.test.ts': ['STOP_WITHIN_COSTS', 'SPOT_PRICE_DEVIATION', 'TWAP_UNAVAILABLE', 'EXIT_IN_PROGRESS'],
  'integration/surface-agents.test.ts': [
    'ERC8004_IDENTITY_NOT_FOUND',
    'ERC8004_OWNER_MISMATCH',
    'ERC8004_ALREADY_LINKED',
  ],
  'integration/events.test.ts': ['EVENT_ID_UNKNOWN', 'TOO_MANY_STREAMS', 'TOO_MANY_STREAMS_OF_CLIENT'],
  'integration/first-loss.test.ts': ['FIRST_LOSS_BOUND'],
  'integration/history.test.ts': ['HISTORY_UNAVAILABLE'],
  'integration/reads.test.ts': ['LIQUIDITY_EXCEEDED'],
  'integration/equity-history.test.ts': ['TOO_MANY_POINTS'],
  'integration/payment.test.ts': ['PAYMENT_REQUIRED', 'INVALID_PAYMENT', 'PAYMENT_REFUSED', 'PAYMENT_NOT_CONFIGURED'],
  'integration/payment-ledger.test.ts': ['PAYMENT_ALREADY_USED', 'REGISTRATION_IN_FLIGHT'],
  'integration/payment-facilitator.test.ts': ['PAYMENT_PENDING', 'FACILITATOR_UNAVAILABLE'],
  'e2e/robinhood.node.test.ts': ['TRANSFER_REFUSED'],
  'integration/price-reports.test.ts': ['PRICE_REPORTS_UNAVAILABLE', 'REPORT_EXPIRED'],
}

/** The codes that no request can cause on a correct deployment, by what would cause them. */
const unreachable: Record<string, readonly string[]> = {
  'contracts that are connected incorrectly': [
    'ACCESS_CONTROL_UNAUTHORIZED_ACCOUNT',
    'ONLY_SELF',
    'ONLY_TRADE_ROUTER',
    'ONLY_AGENT_REGISTRY',
    'ONLY_ALLOCATION_MANAGER',
    'ONLY_ACTIVE_POOL',
    'PROMOTION_CRITERIA_NOT_SET',
    'OWNER_CONTROLS_NOT_SET',
    'ALLOCATION_NOT_FOUND',
    'LEDGER_EXCEEDS_VAULT_BALANCE',
    'INSUFFICIENT_LEDGER',
    'ERC20_INSUFFICIENT_ALLOWANCE',
    'ERC20_INSUFFICIENT_BALANCE',
    'ERC20_INVALID_APPROVER',
    'ERC20_INVALID_RECEIVER',
    'ERC20_INVALID_SENDER',
    'ERC20_INVALID_SPENDER',
    'SAFE_ERC20_FAILED_OPERATION',
    'TRADE_IN_PROGRESS',
    'REENTRANCY_GUARD_REENTRANT_CALL',
    'INVALID_SHORT_STRING',
    'STRING_TOO_LONG',
  ],
  'an administrator who sends a wrong value': [
    'ACCESS_CONTROL_BAD_CONFIRMATION',
    'ZERO_ADDRESS',
    'ASSET_NOT_TRADABLE',
    'FEE_TOO_HIGH',
    'EXPECTED_PAUSE',
    'INVALID_ASSET_DECIMALS',
    'TOKEN_ALREADY_ENABLED',
    'TOKEN_NOT_ACTIVE',
    'TOKEN_NOT_ENABLED',
    'TOO_MANY_TOKENS',
    'ALLOCATION_ALREADY_EXISTS',
    'ALLOCATION_IS_REMOVED',
    'INVALID_ALLOCATION_STATUS',
    'DUPLICATE_ASSET',
    'GRACE_PERIOD_TOO_LONG',
    'LENGTH_MISMATCH',
    'INVALID_AGENT_STATUS',
    'INVALID_TRACK',
    'AGENT_NOT_PROMOTABLE',
    'ILLEGAL_STATUS_MOVE',
    'POOL_NOT_FOUND',
    'DEFAULT_ADMIN_IS_TRANSFERRED_IN_TWO_STEPS',
    'NOT_PENDING_DEFAULT_ADMIN',
    'INVALID_LIQUIDITY_POLICY',
    'INVALID_REQUEST_QUEUE',
    'INVALID_DEVIATION_BOUND',
    'INVALID_SOURCE',
    'STREAM_TAKEN',
    'UNKNOWN_SCHEMA',
    'NOT_UPDATER_SOURCE',
    'NOT_FEED_SOURCE',
    'LIMIT_OUT_OF_RANGE',
    'ORACLE_ROUNDS_BEHIND',
    'SAFE_CAST_OVERFLOWED_INT_DOWNCAST',
    'SAFE_CAST_OVERFLOWED_UINT_TO_INT',
    'SAFE_CAST_OVERFLOWED_INT_TO_UINT',
    'SAFE_CAST_OVERFLOWED_UINT_DOWNCAST',
  ],
  "a provider of reports, a push feed or an issuer that fails: the contracts' own tests cause it": [
    'REPORT_NOT_VERIFIED',
    'MALFORMED_REPORT',
    'UNKNOWN_STREAM',
    'PRICE_FROM_FUTURE',
    'MARKET_NOT_TRADING',
    'SPREAD_TOO_WIDE',
    'MULTIPLIER_UNKNOWN',
    'PRICE_AHEAD_OF_MULTIPLIER',
    'PRICE_BEFORE_MULTIPLIER',
    'FEED_PAUSED',
  ],
  'an administrator who replaces the contract that owners sign messages for': ['MANDATE_NOT_FOUND'],
  'calls that the service never makes: deposits, promotions, ownership, views by identity': [
    'LIQUIDITY_PAUSED',
    'SHARE_PRICE_JUMPED',
    'SHARES_LOCKED',
    'EVALUATION_PERIOD_NOT_OVER',
    'SCORE_TOO_LOW',
    'DAILY_LOSS_LIMIT_BREACHED',
    'DRAWDOWN_LIMIT_BREACHED',
    'OPEN_POSITIONS_OF_OTHER_MODE',
    'FIRST_LOSS_MISSING',
    'EXAMINATION_MISSING',
    'CERTIFICATE_ALREADY_CLAIMED',
    'NOT_AGENT_OWNER',
    'ERC8004_IDENTITY_NOT_LINKED',
    'ERC4626_EXCEEDED_MAX_DEPOSIT',
    'ERC4626_EXCEEDED_MAX_MINT',
    'ERC4626_EXCEEDED_MAX_REDEEM',
    'ERC4626_EXCEEDED_MAX_WITHDRAW',
  ],
  "what keepers meet, and what no quote offers: the contracts' own tests cause it": [
    'POSITION_TOKEN_MISMATCH',
    'ORDER_IS_VOID',
    'ORDER_EXPIRED',
    'PRICE_BEFORE_ORDER',
  ],
  'nothing: the registry accepts the signed nonce, an open position always has a pending rule, a promotion leaves no position behind, and the adapter catches its quotes':
    ['INVALID_ACCOUNT_NONCE', 'CAPITAL_MODE_MISMATCH', 'QUOTED', 'NO_PENDING_EXIT_RULE'],
}

declare global {
  interface ImportMeta {
    glob(pattern: string, options: { query: string; import: string; eager: true }): Record<string, string>
  }
}

const all = new Set<string>(errorCodes.map(({ code }) => code))
const sources = import.meta.glob('../{e2e,integration,unit}/*.test.ts', {
  query: '?raw',
  import: 'default',
  eager: true,
})

describe('every error code', () => {
  it('is listed exactly once', () => {
    const table = [caused, ...Object.values(elsewhere), ...Object.values(unreachable)].flatMap(part =>
      Array.isArray(part) ? part : Object.keys(part),
    )
    expect([...all].filter(code => !table.includes(code))).toEqual([])
    expect(table.filter((code, index) => !all.has(code) || table.indexOf(code) !== index)).toEqual([])
  })

  it.each(Object.entries(elsewhere))('listed for %s appears in that file', (file, codes) => {
    const source = sources[`../${file}`] ?? ''
    expect(codes.filter(code => !source.includes(`'${code}'`))).toEqual([])
  })
})

describe('the request for', () => {
  beforeAll(() =>
    chain.administer({
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'grantRole',
      args: [EXECUTOR_ROLE, direct.address],
    }),
  )
  it.each(Object.entries(caused))('the request for %s causes it', async (expected, cause) => {
    expect(await cause()).toBe(expected)
  })
})
