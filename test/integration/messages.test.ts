import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { chain, GENESIS, newTrader, openPosition, registrationOf, sign, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { app, carrying, paymentOf } from '../support/paid-registration.ts'
import {
  call,
  callOverHttp,
  callOverMcp,
  deployment,
  type Input,
  type OperationId,
  request,
} from '../support/surfaces.ts'

// What the service says to a caller who made a common mistake, over both surfaces: what is wrong, what came, what would
// pass.

let trader: Trader
let positionId: string
beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { symbol: 'AAPL', usdcAmount: '20' })
})

/** Calls an operation over both surfaces and returns both bodies, with the code that they share. */
async function both(id: OperationId, input: Input): Promise<Body[]> {
  const answers = [await callOverHttp(id, input), await callOverMcp(id, input)]
  expect(answers[1]?.body.code).toEqual(answers[0]?.body.code)
  return answers.map(({ body }) => body)
}

/** Expects the same sentence over both surfaces, and remedies that name what each of them has. */
async function expectError(id: OperationId, input: Input, code: string, sentence: RegExp): Promise<Body> {
  const [http, mcp] = await both(id, input)
  expect(http).toMatchObject({ code, error: expect.stringMatching(sentence) })
  expect(mcp).toMatchObject({ code, error: expect.stringMatching(sentence) })
  expect(mcp?.remedy).not.toMatch(ENDPOINT)
  return http
}

/** An endpoint, or a file that no tool serves. */
const ENDPOINT = /\b(GET|POST|PUT|DELETE) \/|\/docs|\/health|swagger/

const reduction = (changes: Input): Input => ({
  agentId: trader.agentId,
  positionId,
  exitBps: 5000,
  deadline: '1790000000',
  nonce: '0',
  signature: `0x${'11'.repeat(65)}`,
  ...changes,
})

it('a short sale and a sale of what is not held are refused because positions are long only', async () => {
  const { agentId } = trader
  const missing = { agentId, positionId: '999999', exitBps: 10_000 }
  for (const other of [missing, { ...missing, positionId: await openPosition(await newTrader(), {}) }]) {
    const [http, mcp] = await both('getReduceIntentQuote', other)
    for (const body of [http, mcp])
      expect(body).toMatchObject({
        code: expect.stringMatching(/^POSITION_(NOT_FOUND|AGENT_MISMATCH)$/),
        remedy: expect.stringContaining('long only'),
      })
  }
  const purchase = { agentId, symbol: 'NVDA', usdcAmount: '-10', exits: '-800:10000' }
  await expectError('getTradeIntentQuote', purchase, 'INVALID_REQUEST', /usdcAmount: must be a decimal number/)
  const sale = { agentId, type: 'stop', symbol: 'NVDA', price: '100', exitBps: 10_000 }
  await expectError('getOrderQuote', sale, 'INVALID_REQUEST', /it sells an open position, which positionId names/)
})

describe('an invalid request', () => {
  it('an invalid request names the field, what came and what would pass', async () => {
    const error = await expectError(
      'submitReduceIntent',
      reduction({ nonce: 'seven' }),
      'INVALID_REQUEST',
      /nonce: must be a string of decimal digits, not "seven"; for example "0"\.$/,
    )
    expect(error.details.problems).toEqual([
      { path: 'nonce', problem: expect.any(String), given: '"seven"', example: '0' },
    ])
  })

  it('an invalid request says which field is missing', async () => {
    const { signature: _, ...unsigned } = reduction({})
    await expectError('submitReduceIntent', unsigned, 'INVALID_REQUEST', /signature: is missing/)
  })

  it('an invalid request suggests the field that an unknown one may have meant', async () => {
    const input = { agentId: trader.agentId, symbol: 'NVDA', usdcAmuont: '10' }
    await expectError(
      'getTradeIntentQuote',
      input,
      'INVALID_REQUEST',
      /no field "usdcAmuont".*Did you mean usdcAmount\?$/,
    )
  })

  it('an invalid request says how to post a quote', async () => {
    const [quote] = await both('getReduceIntentQuote', { agentId: trader.agentId, positionId, exitBps: 100 })
    const signature = await sign(trader.account, quote?.typedData)
    const whole = { ...quote, agentId: trader.agentId, signature }
    await expectError('submitReduceIntent', whole, 'INVALID_REQUEST', /whole quote: send the fields of its `body`/)
    const wrapped = { agentId: trader.agentId, body: quote?.body, signature }
    const [http] = await both('submitReduceIntent', wrapped)
    expect(http?.details.problems.map(({ problem }: Body) => problem)).toContainEqual(
      expect.stringMatching(/whole quote/),
    )
  })

  it.each([
    ['a percentage', '50%', /exitBps: is in basis points, 10000 = 100 %, not "50%"; send 5000\.$/],
    ['a fraction', 0.5, /exitBps: is in basis points, 10000 = 100 %, not 0\.5; send 5000\.$/],
    ['too large a share', 20_000, /exitBps: must be at most 10000, not 20000; for example 5000\.$/],
  ])('an invalid request explains basis points to %s', async (_, exitBps, sentence) => {
    await expectError('submitReduceIntent', reduction({ exitBps }), 'INVALID_REQUEST', sentence)
  })

  it('an invalid request explains basis points in the query of a quote', async () => {
    const input = { agentId: trader.agentId, positionId }
    await expectError(
      'getReduceIntentQuote',
      { ...input, exitBps: '50%' },
      'INVALID_REQUEST',
      /not "50%"; send 5000\.$/,
    )
    const [http, mcp] = await both('getReduceIntentQuote', { ...input, exitBps: '5000' })
    expect([http?.body.exitBps, mcp?.body.exitBps]).toEqual([5000, 5000])
  })

  it('an invalid request explains basis points in a ladder', async () => {
    const input = { agentId: trader.agentId, symbol: 'NVDA', usdcAmount: '10' }
    const sentence = /basis points \(10000 = 100 %\); send -800:5000,1500:10000, not /
    await expectError('getTradeIntentQuote', { ...input, exits: '-8%:50%, 15% : 100%' }, 'INVALID_REQUEST', sentence)
    const inJson = '[{"triggerBps":"-8%","exitBps":"50%"},{"triggerBps":1500,"exitBps":10000}]'
    await expectError('getTradeIntentQuote', { ...input, exits: inJson }, 'INVALID_REQUEST', sentence)
  })

  // Tools accept both, because nothing is lost.
  it.each<[OperationId, string, Input, RegExp]>([
    [
      'submitReduceIntent',
      'digits without quotes',
      { exitBps: '5000' },
      /exitBps: must be a number, not the string "5000"; send 5000 without quotes\.$/,
    ],
    [
      'submitAddIntent',
      'an amount in quotes',
      { usdcAmount: 250.55, exitBps: undefined },
      /usdcAmount: must be a string, not the number 250\.55; send "250\.55" in quotes\.$/,
    ],
  ])('an invalid request over HTTP asks in %s for %s', async (id, _, changes, sentence) => {
    const { body } = await callOverHttp(id, reduction(changes))
    expect(body).toMatchObject({ code: 'INVALID_REQUEST', error: expect.stringMatching(sentence) })
  })

  it('an invalid request cuts what came', async () => {
    const [http] = await both('submitReduceIntent', reduction({ signature: `0x${'zz'.repeat(65)}` }))
    expect(http?.error).toMatch(/not "0xzzzzzzzzz… \(134 characters\)/)
  })
})

describe('an unknown name', () => {
  it.each([
    ['getTradeIntentQuote', { symbol: 'NVDIA' }, 'UNKNOWN_SYMBOL', /symbol NVDIA\. Did you mean NVDA\?$/],
    ['getTradeIntentQuote', { symbol: 'aaple' }, 'UNKNOWN_SYMBOL', /Did you mean AAPL\?$/],
    ['getTradeIntentQuote', { symbol: 'XQZWV' }, 'UNKNOWN_SYMBOL', /with the symbol XQZWV\.$/],
  ] as const)('an unknown name %s of %o gets the nearest symbol', async (id, input, code, sentence) => {
    await expectError(id, { agentId: trader.agentId, usdcAmount: '10', ...input }, code, sentence)
  })

  it('a symbol in any case is no unknown name in quotes and intents', async () => {
    const { agentId } = trader
    const message = { token: deployment.tokens.AAPL }
    const trade = { agentId, symbol: 'aapl', usdcAmount: '10', exits: '-800:10000' }
    expect((await call('getTradeIntentQuote', trade)).body).toMatchObject({ typedData: { message } })
    expect((await call('getOrderQuote', { ...trade, type: 'limit', price: '10' })).body).toMatchObject({
      typedData: { message },
    })
    expect((await call('getMandateQuote', { agentId, mode: 'trade', allowedTokens: 'aapl' })).body).toMatchObject({
      typedData: { message: { allowedTokens: [deployment.tokens.AAPL] } },
    })
    const intents = [{ kind: 'open', symbol: 'aapl', usdcAmount: '10', exits: [{ triggerBps: -800, exitBps: 10_000 }] }]
    expect((await call('whatIf', { agentId, prices: { aapl: '300' }, intents })).status).toBe(200)
  })

  it('an unknown name of a vault gets the nearest slug', async () => {
    const error = await expectError(
      'getVault',
      { id: 'genisis' },
      'VAULT_NOT_FOUND',
      /vault genisis\. Did you mean genesis\?$/,
    )
    expect(error.details).toEqual({ id: 'genisis', nearest: 'genesis' })
  })

  it.each([
    [{ status: 'actve' }, /status: is not a status: must be one of .*Did you mean Active\?$/],
    [{ track: 'Challange' }, /track: is not a track: must be one of .*Did you mean CHALLENGE\?$/],
  ])('an unknown name in the filter %o gets the nearest value', async (input, sentence) => {
    await expectError('listAgents', input, 'INVALID_REQUEST', sentence)
  })

  it('an unknown name in a mandate gets the nearest mode', async () => {
    const input = { agentId: trader.agentId, mode: 'reduceonly' }
    await expectError(
      'getMandateQuote',
      input,
      'INVALID_REQUEST',
      /must be one of trade, reduceOnly, stopped, not "reduceonly"\. Did you mean reduceOnly\?$/,
    )
  })
})

describe('a quote', () => {
  it.each([
    ['getTradeIntentQuote', {}, 'symbol, usdcAmount'],
    ['getTradeIntentQuote', { symbol: 'NVDA' }, 'usdcAmount'],
    ['getAddIntentQuote', { positionId: '' }, 'usdcAmount'],
    ['getReduceIntentQuote', { positionId: '' }, 'exitBps'],
    ['getExitLadderIntentQuote', { positionId: '' }, 'exits'],
    ['getMandateQuote', {}, 'mode'],
    ['getSignerQuote', {}, 'newSigner'],
  ] as const)('a quote %s with %o says what it lacks', async (id, input, missing) => {
    const filled = 'positionId' in input ? { positionId } : input
    const { body } = await call(id, { agentId: trader.agentId, ...filled })
    expect(body.body).toBeUndefined()
    expect(body.warnings).toContainEqual(expect.stringContaining(`request the quote with ${missing} as well`))
  })

  it('a quote has its largest amount in base units and as usdcAmount takes it', async () => {
    const { body } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA' })
    expect(Number(body.maxUsdcAmountHuman) * 1e6).toBeCloseTo(Number(body.maxUsdcAmount))
    const usdcAmount = body.maxUsdcAmountHuman
    const { body: largest } = await call('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'NVDA', usdcAmount })
    expect(largest.typedData.message.usdcAmount).toBe(body.maxUsdcAmount)
    expect(largest.checks.filter(({ pass }: Body) => !pass)).toEqual([])
  })

  it('a quote names tools in the remedies of its checks', async () => {
    const [http, mcp] = await both('getTradeIntentQuote', { agentId: trader.agentId, symbol: 'AAPL', usdcAmount: '10' })
    const remedyOf = (body?: Body) => body?.checks.find(({ pass }: Body) => !pass).remedy
    expect(remedyOf(http)).toBe('Add to it with POST /agents/{agentId}/add-intents.')
    expect(remedyOf(mcp)).toBe('Add to it with svc_submit_add_intent.')
  })
})

describe('a registration', () => {
  const account = () => privateKeyToAccount(generatePrivateKey())
  const named = { name: 'a', metadataURI: 'b' }

  it('a registration takes the slug of a vault', async () => {
    const signer = account()
    const { body: quote } = await call('getRegistrationQuote', { signer: signer.address, vault: 'genesis', ...named })
    expect(quote.body.vault).toBe(GENESIS)
    const signature = await sign(signer, quote.typedData)
    const { status, body } = await call('registerAgent', { ...quote.body, vault: 'genesis', signature })
    expect(status).toBe(201)
    const { body: agent } = await call('getAgent', { agentId: body.agentId })
    expect(agent.agent.vault).toBe(GENESIS)
    const verdict = { primaryType: 'SelfRegister', intent: { ...quote.body, vault: 'genesis' }, signature }
    expect((await call('verifySignature', verdict)).body.typedData.message.vault).toBe(GENESIS)
  })

  it('a registration suggests the nearest vault for an unknown slug', async () => {
    await expectError('getRegistrationQuote', { vault: 'genisis' }, 'VAULT_NOT_FOUND', /Did you mean genesis\?$/)
    const body = { ...(await registrationOf(account())), vault: 'genisis' }
    await expectError('registerAgent', body, 'VAULT_NOT_FOUND', /Did you mean genesis\?$/)
    const checksum = { vault: GENESIS.toLowerCase().replace(/[a-f]/, letter => letter.toUpperCase()) }
    await expectError('getRegistrationQuote', checksum, 'INVALID_REQUEST', /vault: has a wrong EIP-55 checksum/)
  })

  it('a registration warns in its quote of a vault that is not registered, and refuses it', async () => {
    const signer = account()
    const vault = deployment.contracts.AgentRegistry
    const [http, mcp] = await both('getRegistrationQuote', { signer: signer.address, vault, ...named })
    const warning = `${vault} is not a registered vault. Send the contractAddress of a vault that `
    expect(http?.warnings).toEqual([`${warning}GET /vaults lists.`])
    expect(mcp?.warnings).toEqual([`${warning}svc_list_vaults lists.`])
    const body = { ...http?.body, signature: await sign(signer, http?.typedData) }
    await expectError('registerAgent', body, 'VAULT_NOT_REGISTERED', /is not a registered vault\.$/)
  })

  it('a registration warns in its quote of a pause', async () => {
    await chain.pauseTrading('genesis', true)
    await chain.pauseRegistry(true)
    try {
      const input = { signer: account().address, vault: 'genesis', ...named }
      const { body } = await call('getRegistrationQuote', input)
      expect(body.warnings).toEqual([
        expect.stringMatching(/^The agent registry is paused/),
        expect.stringMatching(/^Trading is paused in this vault/),
      ])
    } finally {
      await chain.pauseRegistry(false)
      await chain.pauseTrading('genesis', false)
    }
  })

  it('a registration warns in its quote of an identity that the owner does not hold', async () => {
    const input = { signer: account().address, vault: 'genesis', ...named, linkERC8004: true, erc8004AgentId: '999999' }
    const { body } = await call('getRegistrationQuote', input)
    expect(body.warnings).toEqual([expect.stringMatching(/^The ERC-8004 registry has no token 999999\./)])
  })

  it('a registration without warnings is accepted', async () => {
    const { body } = await call('getRegistrationQuote', { signer: account().address, vault: 'genesis', ...named })
    expect(body).not.toHaveProperty('warnings')
  })

  it('a registration warns in its quote of a signer who cannot pay, and names the payer whose payment fails', async () => {
    const signer = account()
    const input = { signer: signer.address, vault: 'genesis', ...named }
    const { body } = await call('getRegistrationQuote', input, app)
    expect(body.warnings).toEqual([expect.stringMatching(/^The payer 0x\w{40} has 0 USDC and the fee is 1 USDC: /)])

    const payer = account()
    const signed = { ...body.body, signature: await sign(signer, body.typedData) }
    const payment = await paymentOf(payer)
    const sentence = new RegExp(`^The payer ${payer.address} has less than the fee of 1000000 base units of 0x`)
    const { status, body: http } = await callOverHttp('registerAgent', signed, carrying(payment))
    expect({ status, http }).toMatchObject({
      status: 402,
      http: { code: 'PAYMENT_REFUSED', error: expect.stringMatching(sentence) },
    })
    expect(http.remedy).toMatch(/Send the payer the missing amount/)
  })
})

describe('over MCP', () => {
  const fetch = ((input, init) => request(`${input}`, init)) as typeof globalThis.fetch
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  beforeAll(() => client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch })))
  afterAll(() => client.close())

  it('over MCP no remedy names an endpoint or a file', async () => {
    const { contents } = await client.readResource({ uri: 'svc://errors' })
    const { service, contracts } = JSON.parse((contents[0] as { text: string }).text)
    const remedies = [...service, ...contracts].map(({ remedy }: Body) => remedy)
    expect(remedies.length).toBeGreaterThan(100)
    expect(remedies.filter(remedy => ENDPOINT.test(remedy))).toEqual([])
  })

  it('neither do the instructions and prompts', async () => {
    const { prompts } = await client.listPrompts()
    const texts = await Promise.all(
      prompts.map(async ({ name, arguments: given = [] }) => {
        const values = Object.fromEntries(given.map(({ name }) => [name, 'AGENT_NOT_FOUND']))
        return JSON.stringify(await client.getPrompt({ name, arguments: values }))
      }),
    )
    expect([...texts, client.getInstructions()].filter(text => ENDPOINT.test(`${text}`))).toEqual([])
  })
})
