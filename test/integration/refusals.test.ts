import { AgentStatus, AllocationStatus } from '@agent-trading-service/protocol/enums'
import { createTestClient, erc20Abi, type Hex, http, publicActions, toHex, zeroAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import {
  chain,
  FRONTIER,
  GENESIS,
  newTrader,
  openPosition,
  registrationOf,
  type Submission,
  sign,
  signedIntent,
  submit,
  type Trader,
} from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, type CallResult, call, deployment, type Input } from '../support/surfaces.ts'

const { contracts, accounts } = deployment
const client = createTestClient({ mode: 'anvil', transport: retryLatest(http(deployment.rpcUrl)) }).extend(
  publicActions,
)

const nonceOf = (agentId: string) =>
  client.readContract({
    address: contracts.TradeRouter,
    abi: tradeRouterAbi,
    functionName: 'nonces',
    args: [BigInt(agentId)],
  })
const sent = () => client.getTransactionCount({ address: accounts.executor.address })

/** Expects a request to be refused, with no transaction sent and no nonce used. */
async function refused(trader: Trader, post: () => Promise<CallResult>, status: number, code: string): Promise<Body> {
  const before = [await nonceOf(trader.agentId), await sent()]
  const answer = await post()
  expect(answer).toMatchObject({ status, body: { code, remedy: expect.any(String) } })
  expect([await nonceOf(trader.agentId), await sent()]).toEqual(before)
  return answer.body
}

/** Signs and posts an intent, ignoring the checks of its quote, and expects the refusal. */
const refusedIntent = async (
  trader: Trader,
  submission: Submission,
  input: Input,
  status: number,
  code: string,
  changes: Input = {},
) => {
  const body = await signedIntent(trader, submission, input, changes)
  return refused(trader, () => call(submission, body), status, code)
}

const open = (trader: Trader, input: Input, status: number, code: string, changes: Input = {}) =>
  refusedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100', ...input }, status, code, changes)

async function policyOf(vault: `0x${string}`) {
  return client.readContract({
    address: contracts.VaultTrackRegistry,
    abi: vaultTrackRegistryAbi,
    functionName: 'getVaultTrackConfig',
    args: [vault, 0n],
  })
}
const setPolicy = (vault: `0x${string}`, config: Awaited<ReturnType<typeof policyOf>>) =>
  chain.administer({
    address: contracts.VaultTrackRegistry,
    abi: vaultTrackRegistryAbi,
    functionName: 'setVaultTrackConfig',
    args: [vault, 0n, config],
  })

/** Steps that restore the chain after each test, last first. */
const undo: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

async function changePolicy(vault: `0x${string}`, changes: Partial<Awaited<ReturnType<typeof policyOf>>>) {
  const policy = await policyOf(vault)
  undo.push(() => setPolicy(vault, policy))
  await setPolicy(vault, { ...policy, ...changes })
}

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
})

describe('a signature', () => {
  it('a signature of another key is rejected', async () => {
    const stranger = { ...trader, account: privateKeyToAccount(generatePrivateKey()) }
    const body = await signedIntent(stranger, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100' })
    const answer = await refused(trader, () => call('submitTradeIntent', body), 400, 'INVALID_SIGNATURE')
    expect(answer.details).toMatchObject({ signer: trader.account.address, recovered: stranger.account.address })
  })

  it.each([
    ['another amount', { usdcAmount: '101' }],
    ['another ladder', { exits: [{ triggerBps: -900, exitBps: 10000 }] }],
    [
      'another order of the ladder',
      {
        exits: [
          { triggerBps: 1500, exitBps: 10000 },
          { triggerBps: -800, exitBps: 10000 },
        ],
      },
    ],
    ['another token', { symbol: 'AAPL' }],
    ['another slippage', { maxSlippageBps: 101 }],
    ['another minTokenOut', { minTokenOut: '1' }],
  ])('a signature over other values is rejected: %s', async (_, changes) => {
    await open(trader, {}, 400, 'INVALID_SIGNATURE', changes)
  })

  it.each([
    ['with v 37', (signature: Hex) => `${signature.slice(0, 130)}25`],
    ['of 63 bytes', (signature: Hex) => signature.slice(0, 128)],
    ['of 66 bytes', (signature: Hex) => `${signature}00`],
    ['with r zero', (signature: Hex) => `0x${'0'.repeat(64)}${signature.slice(66)}`],
    ['with s zero', (signature: Hex) => `${signature.slice(0, 66)}${'0'.repeat(64)}${signature.slice(130)}`],
  ])('a signature that no wallet returns is rejected: %s', async (_, change) => {
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '100' })
    const changed = { ...body, signature: change(body.signature as Hex) }
    await refused(trader, () => call('submitTradeIntent', changed), 400, 'INVALID_SIGNATURE')
  })

  it('a signature for another chain or another contract is rejected', async () => {
    const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '100' })
    for (const change of [{ chainId: 1 }, { verifyingContract: contracts.AgentRegistry }, { name: 'Other' }]) {
      const domain = { ...body.typedData.domain, ...change }
      const signature = await sign(trader.account, { ...body.typedData, domain })
      const post = () => call('submitTradeIntent', { agentId: trader.agentId, ...body.body, signature })
      await refused(trader, post, 400, 'INVALID_SIGNATURE')
    }
  })
})

describe('a nonce', () => {
  it.each([
    ['used', -1n],
    ['too high', 1n],
  ])('a nonce that is %s is rejected', async (_, distance) => {
    await openPosition(trader, { symbol: distance < 0n ? 'META' : 'TSLA', usdcAmount: '10' })
    const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '100' })
    const nonce = `${BigInt(body.nonce) + distance}`
    const signature = await sign(trader.account, { ...body.typedData, message: { ...body.typedData.message, nonce } })
    const post = () => call('submitTradeIntent', { agentId: trader.agentId, ...body.body, nonce, signature })
    const answer = await refused(trader, post, 400, 'INVALID_NONCE')
    expect(answer.details).toMatchObject({ expected: body.nonce, given: nonce })
  })
})

describe('a deadline', () => {
  it.each([
    ['that has passed', '1', 'EXPIRED_DEADLINE'],
    ['in milliseconds', `${Date.now() + 600_000}`, 'DEADLINE_IN_MILLISECONDS'],
  ])('a deadline %s is rejected, and no quote offers it for signing', async (_, deadline, code) => {
    await open(trader, { deadline }, 400, code)
    const fresh = await newTrader()
    const { agentId, account } = fresh
    const positionId = await openPosition(fresh)
    const registration = {
      signer: account.address,
      vault: GENESIS,
      name: 'late',
      metadataURI: 'https://agents.example',
    }
    const quotes = [
      ['getTradeIntentQuote', { agentId, symbol: 'NVDA', usdcAmount: '100' }],
      ['getAddIntentQuote', { agentId, positionId, usdcAmount: '100' }],
      ['getReduceIntentQuote', { agentId, positionId, exitBps: '5000' }],
      ['getExitLadderIntentQuote', { agentId, positionId, exits: '-900:10000' }],
      ['getRegistrationQuote', registration],
      ['getErc8004LinkQuote', { agentId, erc8004AgentId: '1' }],
    ] as const
    for (const [id, input] of quotes) {
      const { status, body } = await call(id, { ...input, deadline })
      const remedy = expect.stringContaining('leave it out')
      expect({ id, status, body }).toMatchObject({
        id,
        status: 400,
        body: { code, remedy, details: { given: deadline } },
      })
    }
  })

  it('a deadline more than 24 hours ahead is accepted with a warning', async () => {
    const fresh = await newTrader()
    const { status, body } = await submit(fresh, 'submitTradeIntent', {
      symbol: 'NVDA',
      usdcAmount: '10',
      deadline: `${2n ** 256n - 1n}`,
    })
    expect({ status, body }).toMatchObject({ status: 201, body: { warnings: [expect.stringContaining('24 hours')] } })
  })
})

describe('a text of a registration', () => {
  it.each([
    ['NUL', '\u0000', 'U+0000'],
    ['a line break', '\r\n', 'U+000D'],
    ['a C1 control', '\u0085', 'U+0085'],
    ['a line separator', '\u2028', 'U+2028'],
    ['a bidirectional override', '\u202e', 'U+202E'],
    ['a bidirectional isolate', '\u2066', 'U+2066'],
  ])(
    'a text of a registration with %s is rejected by quote, registration and signature check',
    async (_, text, codePoint) => {
      const body = await registrationOf(privateKeyToAccount(generatePrivateKey()))
      const problem = expect.stringContaining(codePoint)
      const expected = { status: 400, body: { code: 'INVALID_REQUEST', error: problem, remedy: expect.any(String) } }
      for (const field of ['name', 'metadataURI']) {
        const { signature, ...changed } = { ...body, [field]: `momentum${text}7` }
        const message = { ...changed, nonce: '0' }
        expect(await call('getRegistrationQuote', changed)).toMatchObject(expected)
        expect(await call('registerAgent', { ...changed, signature })).toMatchObject(expected)
        expect(await call('verifySignature', { primaryType: 'SelfRegister', message, signature })).toMatchObject(
          expected,
        )
      }
    },
  )

  it('a text of a registration may have letters of any script and joined emoji', async () => {
    const name = 'Größe 動量 זרימה 👩‍💻'
    const { agentId } = await newTrader({ name })
    expect((await call('getAgent', { agentId })).body.agent.name).toBe(name)
  })
})

describe('an invalid body', () => {
  const valid = {
    symbol: 'NVDA',
    usdcAmount: '100',
    exits: [{ triggerBps: -800, exitBps: 10000 }],
    deadline: '99999999999',
    nonce: '0',
    signature: `0x${'11'.repeat(65)}`,
  }
  const rule = { triggerBps: -800, exitBps: 10000 }
  it.each([
    ['an amount with seven decimals', { usdcAmount: '1.0000001' }, 'INVALID_AMOUNT'],
    ['an amount of zero', { usdcAmount: '0.000000' }, 'INVALID_AMOUNT'],
    ['an amount of 2^256', { usdcAmount: `${2n ** 256n}` }, 'INVALID_AMOUNT'],
    ['a negative amount', { usdcAmount: '-1' }, 'INVALID_REQUEST'],
    ['an amount in scientific notation', { usdcAmount: '1e3' }, 'INVALID_REQUEST'],
    ['a nonce of 2^256', { nonce: `${2n ** 256n}` }, 'INVALID_REQUEST'],
    ['a deadline with a fraction', { deadline: 1790000000.5 }, 'INVALID_REQUEST'],
    [
      'a ladder of six rules',
      { exits: Array.from({ length: 6 }, (_, i) => ({ ...rule, triggerBps: -100 * (i + 1) })) },
      'INVALID_REQUEST',
    ],
    ['an empty ladder', { exits: [] }, 'INVALID_REQUEST'],
    ['a trigger of zero', { exits: [{ triggerBps: 0, exitBps: 10000 }] }, 'INVALID_REQUEST'],
    ['a triggerType that contradicts the sign', { exits: [{ ...rule, triggerType: 'TakeProfit' }] }, 'INVALID_REQUEST'],
    ['an exitBps of zero', { exits: [{ ...rule, exitBps: 0 }] }, 'INVALID_REQUEST'],
    ['an exitBps above 10000', { exits: [{ ...rule, exitBps: 10001 }] }, 'INVALID_REQUEST'],
    [
      'stop-losses in the wrong order',
      {
        exits: [
          { ...rule, exitBps: 5000 },
          { triggerBps: -700, exitBps: 10000 },
        ],
      },
      'INVALID_EXIT_RULES',
    ],
    ['a last rule that does not sell everything', { exits: [{ ...rule, exitBps: 9999 }] }, 'INVALID_EXIT_RULES'],
    ['an unknown symbol', { symbol: 'NOPE' }, 'UNKNOWN_SYMBOL'],
    ['a symbol that is a property of every object', { symbol: 'constructor' }, 'UNKNOWN_SYMBOL'],
    ['a slippage above 10000', { maxSlippageBps: 10001 }, 'INVALID_REQUEST'],
    ['an unknown field', { leverage: 10 }, 'INVALID_REQUEST'],
    ['a signature that is not hex', { signature: '0xzz' }, 'INVALID_REQUEST'],
  ])('an invalid body is rejected: %s', async (_, changes, code) => {
    const post = () => call('submitTradeIntent', { agentId: trader.agentId, ...valid, ...changes })
    await refused(trader, post, 400, code)
  })

  it('an invalid body with an invalid ladder is rejected with the index of the rule', async () => {
    const exits = [
      { ...rule, exitBps: 5000 },
      { triggerBps: -700, exitBps: 10000 },
    ]
    const { body } = await call('submitTradeIntent', { agentId: trader.agentId, ...valid, exits })
    expect(body.details).toMatchObject({ ruleIndex: 1, limit: '-800', given: '-700' })
  })

  it('an invalid body for an unknown agent gets 404', async () => {
    expect(await call('submitTradeIntent', { agentId: '999999', ...valid })).toMatchObject({
      status: 404,
      body: { code: 'AGENT_NOT_FOUND' },
    })
  })
})

describe('the router rejects', () => {
  it('the router rejects a token that is not allowed in the vault', () =>
    open(trader, { symbol: 'COIN' }, 400, 'TOKEN_NOT_ALLOWED'))

  it('the router rejects a second position in the same token, and names the first', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { usdcAmount: '10' })
    const { error, details } = await open(fresh, {}, 400, 'POSITION_ALREADY_OPEN')
    expect(details).toMatchObject({ positionId })
    expect(error).toContain(`position ${positionId}`)
  })

  it("the router rejects a ladder outside the track's bounds, naming rule and bound", async () => {
    const { details } = await open(trader, { exits: '-6000:10000' }, 400, 'EXIT_RULES_OUT_OF_BOUNDS')
    expect(details).toMatchObject({ ruleIndex: 0, limit: '-5000', given: '-6000' })
    await open(trader, { exits: '1500:10000' }, 400, 'EXIT_RULES_OUT_OF_BOUNDS')
  })

  it('the router rejects a trade above the allocation cap', async () => {
    const fresh = await newTrader()
    await openPosition(fresh, { usdcAmount: '9000' })
    const { details } = await open(fresh, { symbol: 'AAPL', usdcAmount: '1000.000001' }, 400, 'EXCEEDS_ALLOCATION_CAP')
    expect(details).toMatchObject({ used: '10000000001', cap: '10000000000' })
  })

  it('the router rejects a trade above the maximum trade size', async () => {
    const fresh = await newTrader({ vault: FRONTIER })
    await open(fresh, { usdcAmount: '4900' }, 400, 'EXCEEDS_MAX_TRADE_SIZE')
  })

  it('the router rejects a trade above the daily turnover', async () => {
    await changePolicy(GENESIS, { maxDailyTurnoverBps: 1n })
    const fresh = await newTrader()
    await openPosition(fresh, { usdcAmount: '60' })
    await open(fresh, { symbol: 'AAPL', usdcAmount: '60' }, 400, 'EXCEEDS_DAILY_TURNOVER')
  })

  it('the router rejects new risk once the daily loss limit is reached', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { symbol: 'AMZN', usdcAmount: '9000' })
    await chain.setPrice('AMZN', '220')
    undo.push(() => chain.setPrice('AMZN', '244.2'))
    expect((await submit(fresh, 'submitReduceIntent', { positionId, exitBps: '10000' })).status).toBe(201)
    await open(fresh, {}, 400, 'EXCEEDS_DAILY_LOSS')
    expect((await call('getRiskState', { agentId: fresh.agentId })).body.breaches.dailyLoss).toBe(true)
  })

  it('the router rejects new risk of a suspended agent, but not its reduce', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { usdcAmount: '10' })
    await chain.setAgentStatus(BigInt(fresh.agentId), AgentStatus.Suspended)
    await open(fresh, { symbol: 'AAPL' }, 400, 'AGENT_NOT_TRADABLE')
    await refusedIntent(fresh, 'submitAddIntent', { positionId, usdcAmount: '10' }, 400, 'AGENT_NOT_TRADABLE')
    expect((await submit(fresh, 'submitReduceIntent', { positionId, exitBps: '10000' })).status).toBe(201)
  })

  it('the router rejects new risk while the allocation is paused', async () => {
    const fresh = await newTrader()
    await chain.send(accounts.operator, {
      address: contracts.AllocationManager,
      abi: allocationManagerAbi,
      functionName: 'setAllocationStatus',
      args: [BigInt(fresh.agentId), AllocationStatus.Paused],
    })
    await open(fresh, {}, 400, 'ALLOCATION_NOT_ACTIVE')
  })

  it('the router rejects new risk while the track is inactive', async () => {
    await changePolicy(GENESIS, { active: false })
    await open(trader, {}, 400, 'VAULT_TRACK_NOT_ACTIVE')
  })

  it('the router rejects new risk and registrations while the registry is paused, but not a reduce', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { usdcAmount: '10' })
    await chain.pauseRegistry(true)
    undo.push(() => chain.pauseRegistry(false))
    await open(fresh, { symbol: 'AAPL' }, 503, 'REGISTRY_PAUSED')
    await refusedIntent(fresh, 'submitAddIntent', { positionId, usdcAmount: '10' }, 503, 'REGISTRY_PAUSED')
    expect((await submit(fresh, 'submitReduceIntent', { positionId, exitBps: '10000' })).status).toBe(201)
    const registration = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    expect(await call('registerAgent', registration)).toMatchObject({
      status: 503,
      body: { code: 'REGISTRATION_PAUSED' },
    })
  })

  it('the router rejects trades while trading is paused in the vault, but not a ladder update', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { usdcAmount: '10' })
    await chain.pauseTrading('genesis', true)
    undo.push(() => chain.pauseTrading('genesis', false))
    await open(fresh, { symbol: 'AAPL' }, 503, 'TRADING_PAUSED')
    await refusedIntent(fresh, 'submitReduceIntent', { positionId, exitBps: '5000' }, 503, 'TRADING_PAUSED')
    expect((await submit(fresh, 'submitExitLadderIntent', { positionId, exits: '-900:10000' })).status).toBe(201)
  })

  it('the router rejects a fill below the slippage floor or below minTokenOut', async () => {
    const fresh = await newTrader()
    await open(fresh, { symbol: 'COST', usdcAmount: '5000' }, 400, 'SLIPPAGE_EXCEEDED')
    await open(fresh, { usdcAmount: '100', minTokenOut: `${10n ** 24n}` }, 400, 'SLIPPAGE_EXCEEDED')
  })

  it("the router rejects a trade above the vault's idle assets", async () => {
    const fresh = await newTrader({ vault: FRONTIER })
    await openPosition(fresh, { usdcAmount: '3900' })
    await changePolicy(FRONTIER, { maxTradeSizeBps: 10_000n, maxDailyTurnoverBps: 0n })
    const vault = { address: FRONTIER, abi: mandateVaultAbi } as const
    const { address: depositor } = accounts.depositor
    const idle = await client.readContract({ ...vault, functionName: 'maxWithdraw', args: [depositor] })
    const taken = idle - 100_000_000n
    await chain.send(accounts.depositor, { ...vault, functionName: 'withdraw', args: [taken, depositor, depositor] })
    undo.push(async () => {
      const approve = { functionName: 'approve', args: [FRONTIER, taken] } as const
      await chain.send(accounts.depositor, { address: contracts.USDC, abi: erc20Abi, ...approve })
      await chain.send(accounts.depositor, { ...vault, functionName: 'deposit', args: [taken, depositor] })
    })
    // The vault's NVDA is worth more than all caps, so that its assets do not shrink them.
    undo.push(async () => {
      await chain.setPrice('NVDA', '180.25')
      await chain.increaseTime(3) // the pool's average follows
    })
    await chain.setPrice('NVDA', '36050')
    await open(fresh, { symbol: 'META', usdcAmount: '500' }, 400, 'INSUFFICIENT_IDLE_ASSETS')
  })

  it('the router rejects a trade while the sequencer is down, and in the grace period after it', async () => {
    const feed = '0x00000000000000000000000000000000005e9fee'
    const { timestamp } = await client.getBlock()
    const setFeed = (address: `0x${string}`, grace: bigint) =>
      chain.administer({
        address: contracts.PriceOracle,
        abi: priceOracleAbi,
        functionName: 'setSequencerFeed',
        args: [address, grace],
      })
    undo.push(() => setFeed(zeroAddress, 0n))
    await client.setCode({ address: feed, bytecode: bytecodeReturning([1n, 1n, timestamp - 10n, timestamp, 1n]) })
    await setFeed(feed, 3600n)
    await open(trader, {}, 400, 'SEQUENCER_DOWN')
    await client.setCode({ address: feed, bytecode: bytecodeReturning([1n, 0n, timestamp - 10n, timestamp, 1n]) })
    await open(trader, {}, 400, 'SEQUENCER_GRACE_PERIOD')
  })

  it('the router rejects intents on a dust, foreign or closed position, and a ladder that would fire immediately', async () => {
    const fresh = await newTrader({ vault: FRONTIER })
    await open(fresh, { symbol: 'COIN', usdcAmount: '0.999999' }, 400, 'TRADE_TOO_SMALL')
    const dust = await openPosition(fresh, { symbol: 'COIN', usdcAmount: '1' })
    await refusedIntent(fresh, 'submitReduceIntent', { positionId: dust, exitBps: '1' }, 400, 'INVALID_REDUCE_AMOUNT')
    await refusedIntent(fresh, 'submitReduceIntent', { positionId: dust, exitBps: '5000' }, 400, 'TRADE_TOO_SMALL')

    const positionId = await openPosition(fresh, { symbol: 'HOOD', usdcAmount: '100' })
    await refusedIntent(
      fresh,
      'submitExitLadderIntent',
      { positionId, exits: '-1:10000' },
      400,
      'PENDING_RULE_ALREADY_TRIGGERED',
    )

    const other = await newTrader({ vault: FRONTIER })
    const { body } = await call('getReduceIntentQuote', { agentId: fresh.agentId, positionId, exitBps: 5000 })
    const message = { ...body.typedData.message, agentId: other.agentId }
    const nonce = (await call('getTradeIntentQuote', { agentId: other.agentId })).body.nonce
    const signature = await sign(other.account, { ...body.typedData, message: { ...message, nonce } })
    const stolen = { ...body.body, agentId: other.agentId, nonce, signature }
    await refused(other, () => call('submitReduceIntent', stolen), 404, 'POSITION_AGENT_MISMATCH')
    expect(await call('getReduceIntentQuote', { agentId: other.agentId, positionId })).toMatchObject({
      status: 404,
      body: { code: 'POSITION_NOT_FOUND' },
    })

    expect((await submit(fresh, 'submitReduceIntent', { positionId, exitBps: '10000' })).status).toBe(201)
    await refusedIntent(fresh, 'submitAddIntent', { positionId, usdcAmount: '10' }, 400, 'POSITION_NOT_OPEN')
  })

  it('the router rejects a ladder of more than five rules, fired ones included', async () => {
    const fresh = await newTrader()
    const positionId = await openPosition(fresh, { symbol: 'AMZN', usdcAmount: '100', exits: '-500:1000,-900:10000' })
    await chain.setPrice('AMZN', '225')
    undo.push(() => chain.setPrice('AMZN', '244.2'))
    await chain.send(accounts.keeper, {
      address: contracts.TradeRouter,
      abi: tradeRouterAbi,
      functionName: 'executeExit',
      args: [BigInt(positionId)],
    })
    const exits = '-1500:1000,-2000:1000,-2500:1000,-3000:1000,-3500:10000'
    await refusedIntent(fresh, 'submitExitLadderIntent', { positionId, exits }, 400, 'TOO_MANY_EXIT_RULES')
  })
})

describe('a registration', () => {
  const key = () => privateKeyToAccount(generatePrivateKey())
  it.each([
    ['in an unregistered vault', { vault: contracts.TradeRouter }, 400, 'VAULT_NOT_REGISTERED'],
    ['with an unknown identity', { linkERC8004: true, erc8004AgentId: '99' }, 404, 'ERC8004_IDENTITY_NOT_FOUND'],
    ['with an identity of another owner', { linkERC8004: true, erc8004AgentId: '0' }, 400, 'ERC8004_OWNER_MISMATCH'],
  ])('a registration %s is rejected', async (_, changes, status, code) => {
    expect(await call('registerAgent', await registrationOf(key(), changes))).toMatchObject({ status, body: { code } })
  })

  it('a registration with an identity id but without linkERC8004 is rejected', async () => {
    const body = await registrationOf(key())
    expect(await call('registerAgent', { ...body, erc8004AgentId: '1' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_ERC8004_LINK' },
    })
  })

  it('a registration for a signer who did not sign it is rejected', async () => {
    const body = await registrationOf(key())
    expect(await call('registerAgent', { ...body, signer: key().address })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE' },
    })
  })
})

describe('a deployment', () => {
  it('a deployment without a chain responds 500', async () => {
    const app = appWith({ RPC_URL: undefined })
    for (const [id, input] of [
      ['listVaults', {}],
      ['listTokens', {}],
      ['getPrices', {}],
      ['getAgent', { agentId: '1' }],
      ['getRegistrationQuote', {}],
    ] as const)
      expect(await call(id, input, app)).toMatchObject({ status: 500, body: { code: 'CHAIN_NOT_CONFIGURED' } })
  })

  it('a deployment without a trade router responds 503 to trading', async () => {
    const { TradeRouter: _, ...rest } = contracts
    const app = appWith({ CONTRACTS: JSON.stringify(rest) })
    for (const id of ['listPositions', 'listClosedPositions', 'getRiskState', 'getTradeIntentQuote'] as const)
      expect(await call(id, { agentId: '1' }, app)).toMatchObject({
        status: 503,
        body: { code: 'TRADING_NOT_CONFIGURED' },
      })
  })

  it('a deployment without executor and relayer responds 503 to submissions', async () => {
    const app = appWith({ EXECUTOR_PRIVATE_KEY: undefined, RELAYER_PRIVATE_KEY: undefined })
    const body = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })
    expect(await call('submitTradeIntent', body, app)).toMatchObject({
      status: 503,
      body: { code: 'EXECUTOR_NOT_CONFIGURED' },
    })
    expect(await call('listClosedPositions', { agentId: '1' }, app)).toMatchObject({ status: 503 })
    const registration = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    expect(await call('registerAgent', registration, app)).toMatchObject({
      status: 503,
      body: { code: 'RELAYER_NOT_CONFIGURED' },
    })
  })

  it('a deployment without a reachable node responds 502, without the URL of the node', async () => {
    const app = appWith({ RPC_URL: 'http://127.0.0.1:1/secret-key' })
    const answer = await call('listVaults', {}, app)
    expect(answer).toMatchObject({ status: 502, body: { code: 'CHAIN_UNREACHABLE', retryable: true } })
    expect(JSON.stringify(answer.body)).not.toContain('secret-key')
    expect(answer.headers.get('retry-after')).toBe('2')
  })

  it('a deployment with a node of another chain responds 502', async () => {
    expect(await call('listVaults', {}, appWith({ CHAIN_ID: '42161' }))).toMatchObject({ status: 502 })
  })
})

describe('a stale price', () => {
  it('a stale price rejects new risk and reduces, while reads mark it as stale', async () => {
    const fresh = await newTrader()
    const { agentId } = fresh
    const positionId = await openPosition(fresh, { usdcAmount: '100' })
    undo.push(() => chain.refreshPrices())
    await chain.increaseTime(90_000)
    await open(fresh, { symbol: 'AAPL' }, 400, 'STALE_PRICE')
    const depth = await call('getDepth', { symbol: 'AAPL', usdcAmount: '10' })
    expect(depth).toMatchObject({ status: 400, body: { code: 'STALE_PRICE' } })
    await refusedIntent(fresh, 'submitReduceIntent', { positionId, exitBps: '5000' }, 400, 'STALE_PRICE')
    const { body: quote } = await call('getTradeIntentQuote', { agentId, symbol: 'AAPL', usdcAmount: '10' })
    expect(quote).toMatchObject({ bindingRule: 'freshPrice', maxUsdcAmount: '0' })
    const { body: prices } = await call('getPrices', { symbols: 'NVDA' })
    expect(prices.prices.NVDA.stale).toBe(true)
    const { body } = await call('getPosition', { agentId, positionId })
    expect(body.position).toMatchObject({ priceStale: true, derived: { returnBps: null } })
    expect(body.position).not.toHaveProperty('unrealizedPnlUsdc')
    const { status, body: risk } = await call('getRiskState', { agentId })
    expect({ status, risk }).toMatchObject({ status: 200, risk: { priceStale: true, staleSymbols: ['NVDA'] } })
    const asOf = Number(risk.asOf.blockTimestamp)
    expect(Number((await call('listPositions', { agentId })).body.asOf.blockTimestamp)).toBeGreaterThanOrEqual(asOf)
  })
})

/** Returns bytecode of a contract that returns these words for every call. */
function bytecodeReturning(words: bigint[]): Hex {
  const stores = words.map(
    (word, index) => `7f${toHex(word, { size: 32 }).slice(2)}60${(index * 32).toString(16).padStart(2, '0')}52`,
  )
  return `0x${stores.join('')}60${(words.length * 32).toString(16).padStart(2, '0')}6000f3`
}
