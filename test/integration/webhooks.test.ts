import {
  abortAllDurableObjects,
  createExecutionContext,
  createScheduledController,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { Webhook } from 'standardwebhooks'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { scaledStockTokenAbi } from '../../contracts-abi/scaled-stock-token.ts'
import worker from '../../src/index.ts'
import { chain, newTrader, openPosition, sign, submit, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { listen } from '../support/event-stream.ts'
import { node } from '../support/history-oracle.ts'
import { loseAlarm } from '../support/lose-alarm.ts'
import { newOwnedTrader } from '../support/owner.ts'
import { reorgChain } from '../support/reorg-chain.ts'
import { appWith, callOverHttp, callOverMcp, deployment, type Fetch, request } from '../support/surfaces.ts'
import { interceptWebhooks } from '../support/webhook-receiver.ts'

// Webhooks on a chain with reorgs.
// HTTP only: the first response has the secret, and its repetition over the other surface must not.

let receiver: ReturnType<typeof interceptWebhooks>
let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
  receiver = interceptWebhooks()
})
afterAll(() => receiver.restore())

const newAccount = () => privateKeyToAccount(generatePrivateKey())
const WAIT = { timeout: 30_000, interval: 50 }
const indexer = () => env.HISTORY_INDEXER.getByName(`${deployment.chainId}`)
const objectOf = ({ agentId }: Trader) => env.WEBHOOKS.getByName(`${deployment.chainId}:${agentId}`)

/** Returns the signed body that a quote of webhooks describes. */
async function signedBody(
  quote: 'getWebhookQuote' | 'getWebhookListQuote' | 'getWebhookChangeQuote',
  input: Body,
  account: PrivateKeyAccount = trader.account,
  fetch?: Fetch,
): Promise<Body> {
  const { status, body } = await callOverHttp(quote, input, fetch)
  expect({ status, body }).toMatchObject({ status: 200 })
  return { ...body.body, signature: await sign(account, body.typedData) }
}

async function create(input: Body, { agentId, account }: Trader = trader) {
  const body = await signedBody('getWebhookQuote', { agentId, ...input }, account)
  return callOverHttp('createWebhook', { agentId, ...body })
}

async function list({ agentId, account }: Trader = trader): Promise<Body[]> {
  const body = await signedBody('getWebhookListQuote', { agentId }, account)
  return (await callOverHttp('listWebhooks', { agentId, ...body })).body.webhooks
}

async function change(webhookId: string, action: string, { agentId, account }: Trader = trader) {
  const body = await signedBody('getWebhookChangeQuote', { agentId, webhookId, action }, account)
  return callOverHttp('changeWebhook', { agentId, webhookId, ...body })
}

async function find(webhookId: string, of: Trader = trader): Promise<Body> {
  return (await list(of)).find(webhook => webhook.webhookId === webhookId)
}

/** Creates a webhook of a new agent whose receiver is a host of its own. */
async function newWebhook(host: string, input: Body = {}) {
  const own = await newTrader()
  const { status, body } = await create({ url: `https://${host}/events`, ...input }, own)
  expect({ status, body }).toMatchObject({ status: 201, body: { secret: expect.stringMatching(/^whsec_/) } })
  return { own, webhookId: body.webhook.webhookId as string, secret: body.secret as string }
}

/** Waits until a host has got an event of a type, and returns the first. */
const reaches = (host: string, type: string) =>
  vi.waitFor(() => {
    const delivery = receiver.of(host).find(({ body }) => body.type === type)
    expect(delivery).toBeDefined()
    return delivery as NonNullable<typeof delivery>
  }, WAIT)

it('a message about webhooks is for one service: another one over the same contracts cannot repeat it', async () => {
  const serving = (host: string) => appWith({ BASE_URL: `https://${host}` })
  const [here, elsewhere] = [serving('here.example'), serving('elsewhere.example')]
  const { agentId } = trader
  const list = await signedBody('getWebhookListQuote', { agentId }, trader.account, elsewhere)
  expect((await callOverHttp('listWebhooks', { agentId, ...list }, elsewhere)).status).toBe(200)
  const refused = { status: 400, body: { code: 'INVALID_SIGNATURE' } }
  expect(await callOverHttp('listWebhooks', { agentId, ...list }, here)).toMatchObject(refused)
  const url = 'https://agents.example/elsewhere'
  const create = await signedBody('getWebhookQuote', { agentId, url }, trader.account, elsewhere)
  expect(await callOverHttp('createWebhook', { agentId, ...create }, here)).toMatchObject(refused)

  const renamed = appWith({ BASE_URL: 'https://here.example', ALLOWED_HOSTS: 'elsewhere.example' })
  expect((await callOverHttp('listWebhooks', { agentId, ...list }, renamed)).status).toBe(200)
})

describe('a webhook', () => {
  it('a webhook gets the events of GET /agents/{agentId}/events: the same ids, order and data, also across a reorg', async () => {
    const { own, secret } = await newWebhook('order.hooks.example')
    const stream = listen(await request(`/agents/${own.agentId}/events`))
    await stream.open()
    await node.request({ method: 'anvil_mine', params: ['0x40', '0x0'] } as never)
    const positionId = await openPosition(own, { symbol: 'NVDA', usdcAmount: '100' })
    const trade = await stream.next('trade')
    await reorgChain(Number(trade.data.blockNumber) - 32)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const reorg = await stream.next('reorg')
    expect(reorg.data.withdrawn).toEqual([trade.id])
    await stream.next('trade')
    const close = () => submit(own, 'submitReduceIntent', { positionId, exitBps: 10_000 })
    // Until what the reorg took back is mined again, the lane may be busy.
    await vi.waitFor(async () => expect((await close()).status).toBe(201), WAIT)
    const last = await stream.until(() => stream.events.find(({ data }) => data.type === 'PositionReduced'))
    await vi.waitFor(() => expect(receiver.of('order.hooks.example').map(({ id }) => id)).toContain(last.id), WAIT)
    const seen = stream.events.slice(0, 1 + stream.events.indexOf(last))
    await stream.leave()
    // Intents may change their state after the trade.
    const deliveries = receiver.of('order.hooks.example').slice(0, seen.length)
    expect(deliveries.map(({ id, body: { type, data } }) => ({ id, event: type, data }))).toEqual(seen)
    for (const { headers, text, body } of deliveries) {
      expect(new Webhook(secret).verify(text, headers)).toEqual(body)
      expect(Math.abs(Date.parse(body.timestamp) - Date.now())).toBeLessThan(120_000)
    }
    expect(deliveries[0]?.headers['content-type']).toBe('application/json')
  })

  it('a webhook gets the corporate actions of the tokens that its agent holds', async () => {
    const { own, secret } = await newWebhook('actions.hooks.example', { eventTypes: 'corporateAction' })
    await openPosition(own, { symbol: 'AMZN', usdcAmount: '100' })
    // Far enough ahead that it concerns no other test.
    const effectiveAt = Number((await node.getBlock()).timestamp) + 30 * 86_400
    await chain.send(deployment.accounts.admin, {
      address: deployment.tokens.AMZN as `0x${string}`,
      abi: scaledStockTokenAbi,
      functionName: 'updateMultiplier',
      args: [1_021_486_444_855_206_408n, BigInt(effectiveAt)],
    })
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    const { headers, text, body } = await reaches('actions.hooks.example', 'corporateAction')
    expect(new Webhook(secret).verify(text, headers)).toEqual(body)
    expect(body.data).toMatchObject({
      agentId: own.agentId,
      symbol: 'AMZN',
      state: 'announced',
      newMultiplier: '1.021486444855206408',
      effectiveAt: `${effectiveAt}`,
    })
    expect(receiver.of('actions.hooks.example')).toHaveLength(1)
  })

  it('a webhook shows its secret once: a repeated body, the list and MCP do not, and a repeated body creates nothing', async () => {
    const { agentId, account } = await newTrader()
    const own = { agentId, account }
    const url = 'https://secret.hooks.example/events?token=abc'
    const body = await signedBody('getWebhookQuote', { agentId, url, eventTypes: 'trade,exit' }, account)
    const created = await callOverHttp('createWebhook', { agentId, ...body })
    expect(created).toMatchObject({
      status: 201,
      body: { webhook: { url, eventTypes: ['trade', 'exit'], createdBy: 'owner', state: 'active' } },
    })
    const { secret, webhook } = created.body
    for (const repeat of [callOverHttp, callOverMcp]) {
      const repeated = await repeat('createWebhook', { agentId, ...body })
      expect(repeated.body.webhook.webhookId).toBe(webhook.webhookId)
      expect(JSON.stringify(repeated.body)).not.toContain('whsec_')
    }
    expect((await callOverHttp('createWebhook', { agentId, ...body })).status).toBe(200)
    const webhooks = await list(own)
    expect(webhooks).toHaveLength(1)
    expect(JSON.stringify(webhooks)).not.toContain(secret)

    expect(await change(webhook.webhookId, 'delete', own)).toMatchObject({
      status: 201,
      body: { webhook: { state: 'deleted' } },
    })
    const again = await callOverHttp('createWebhook', { agentId, ...body })
    expect(again).toMatchObject({ status: 200, body: { webhook: { state: 'deleted' } } })
    expect([await list(own), again.body.secret]).toEqual([[], undefined])
  })

  it('a webhook is tested at once, and a repeated test posts nothing', async () => {
    const { own, webhookId, secret } = await newWebhook('test.hooks.example')
    const body = await signedBody(
      'getWebhookChangeQuote',
      { agentId: own.agentId, webhookId, action: 'test' },
      own.account,
    )
    const input = { agentId: own.agentId, webhookId, ...body }
    const tested = await callOverHttp('changeWebhook', input)
    expect(tested).toMatchObject({ status: 201, body: { webhook: { lastTest: { delivered: true, status: 200 } } } })
    expect((await callOverHttp('changeWebhook', input)).status).toBe(200)
    const [delivery, ...others] = receiver.of('test.hooks.example')
    expect([others, delivery?.body]).toEqual([
      [],
      { type: 'test', timestamp: expect.any(String), data: { agentId: own.agentId } },
    ])
    new Webhook(secret).verify(delivery?.text ?? '', delivery?.headers ?? {})

    receiver.respond.set('test.hooks.example', () => Response.redirect('https://other.hooks.example/', 307))
    expect((await change(webhookId, 'test', own)).body.webhook.lastTest).toMatchObject({
      delivered: false,
      status: 307,
      problem: 'the response has status 307; redirects are not followed',
    })
    expect(receiver.of('other.hooks.example')).toEqual([])
  })

  it('a webhook carries two signatures for a day after its secret was rotated', async () => {
    const { own, webhookId, secret } = await newWebhook('rotation.hooks.example')
    const rotated = await change(webhookId, 'rotateSecret', own)
    const { previousSecretUntil } = rotated.body.webhook
    expect(Number(previousSecretUntil) - Date.now() / 1000).toBeGreaterThan(86_300)
    await change(webhookId, 'test', own)
    const [first] = receiver.of('rotation.hooks.example')
    for (const known of [secret, rotated.body.secret])
      new Webhook(known).verify(first?.text ?? '', first?.headers ?? {})

    await runInDurableObject(objectOf(own), (_, { storage }) => {
      storage.sql.exec(`UPDATE webhook SET value = json_set(value, '$.previousSecretUntil', ?)`, Date.now())
    })
    await change(webhookId, 'test', own)
    const second = receiver.of('rotation.hooks.example').at(-1)
    new Webhook(rotated.body.secret).verify(second?.text ?? '', second?.headers ?? {})
    expect(() => new Webhook(secret).verify(second?.text ?? '', second?.headers ?? {})).toThrow()
  })

  it('a webhook says why it fails, is disabled by 410, and goes on with the same event once it is enabled', async () => {
    const host = 'failing.hooks.example'
    const { own, webhookId } = await newWebhook(host, { eventTypes: 'trade' })
    receiver.respond.set(host, () => new Response(null, { status: 503, headers: { 'retry-after': '3000' } }))
    await openPosition(own, { symbol: 'AAPL', usdcAmount: '100' })
    const trade = await reaches(host, 'trade')
    const failing = await vi.waitFor(async () => {
      const webhook = await find(webhookId, own)
      expect(webhook.failure).toMatchObject({ messageId: trade.id, attempts: 1, status: 503 })
      return webhook
    }, WAIT)
    expect(Number(failing.nextAttemptAt) - Number(failing.failure.lastAttemptAt)).toBeGreaterThan(2_990)

    receiver.respond.set(host, () => new Response(null, { status: 410 }))
    await change(webhookId, 'enable', own) // retries at once
    await vi.waitFor(async () => {
      expect(await find(webhookId, own)).toMatchObject({
        state: 'disabled',
        disabledReason: expect.stringContaining('410'),
      })
    }, WAIT)
    receiver.respond.delete(host)
    await change(webhookId, 'enable', own)
    await vi.waitFor(async () => expect((await find(webhookId, own)).lastDeliveredAt).toBeDefined(), WAIT)
    expect(receiver.of(host).map(({ id }) => id)).toEqual([trade.id, trade.id, trade.id])
    expect((await find(webhookId, own)).failure).toBeUndefined()
  })

  it('a webhook resolves its host before every delivery, and refuses an address that became private', async () => {
    const host = 'rebinding.hooks.example'
    const { own, webhookId } = await newWebhook(host)
    receiver.addresses.set(host, '10.0.0.1')
    const { body } = await change(webhookId, 'test', own)
    expect(body.webhook.lastTest).toMatchObject({ delivered: false, problem: expect.stringContaining('not public') })
    expect(receiver.of(host)).toEqual([])
    const refused = await create({ url: `https://${host}/other` }, own)
    expect([refused.status, refused.body.code]).toEqual([400, 'WEBHOOK_URL_REFUSED'])
  })

  it('a webhook tells that a price became stale, although nobody trades and no stream is open', async () => {
    const host = 'stale.hooks.example'
    const { own } = await newWebhook(host, { eventTypes: 'trade,price-stale' })
    await openPosition(own, { symbol: 'NVDA', usdcAmount: '100' })
    await reaches(host, 'trade')
    await evictDurableObject(env.EVENT_STREAMS.getByName(`${deployment.chainId}`)) // it evaluates alerts again after the trade
    await chain.increaseTime(2 * 86_400)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 15_000 })
    await runInDurableObject(indexer(), object => object.alarm()).finally(() => vi.useRealTimers())
    expect((await reaches(host, 'price-stale')).body.data).toMatchObject({ agentId: own.agentId, symbol: 'NVDA' })
    await chain.refreshPrices()
  })

  it('a webhook gets its events soon after a deploy has reset every object', async () => {
    const host = 'index.hooks.example'
    const { own } = await newWebhook(host, { eventTypes: 'trade' })
    await abortAllDurableObjects()
    await runDurableObjectAlarm(indexer())
    await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    await reaches(host, 'trade')
  })

  it('a webhook loses nothing if its object is evicted, and repeats at most the attempt in flight', async () => {
    const host = 'evicted.hooks.example'
    const { own } = await newWebhook(host, { eventTypes: 'trade' })
    await evictDurableObject(objectOf(own))
    const positionId = await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    await reaches(host, 'trade')
    await evictDurableObject(objectOf(own))
    await submit(own, 'submitReduceIntent', { positionId, exitBps: 10_000 })
    const { body } = await callOverHttp('getTradeHistory', { agentId: own.agentId })
    const positionOf = ({ blockNumber, logIndex }: Body) => `${blockNumber}-${logIndex}`
    const trades = body.trades.map(positionOf).reverse()
    expect(trades.length).toBeGreaterThan(1)
    await vi.waitFor(() => {
      const delivered = receiver.of(host).map(delivery => positionOf(delivery.body.data))
      expect([...new Set(delivered)]).toEqual(trades)
    }, WAIT)
    // The attempt that the second eviction met may be repeated.
    expect(receiver.of(host).length).toBeLessThanOrEqual(trades.length + 1)
  })
})

describe('a webhook whose event log was lost', () => {
  it('a webhook whose event log was lost asks for notices again within the hour, and gets what was logged meanwhile', async () => {
    const host = 'forgotten.hooks.example'
    const { own, webhookId } = await newWebhook(host, { eventTypes: 'trade' })
    await vi.waitFor(async () => expect((await find(webhookId, own)).nextAttemptAt).toBeFalsy(), WAIT)
    const log = env.EVENT_STREAMS.getByName(`${deployment.chainId}`)
    await log.setWebhookCounts(Number(own.agentId), { active: 0, places: 0 }, 0)
    await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    expect(receiver.of(host)).toEqual([])
    const renewsAt = await runInDurableObject(objectOf(own), (_, { storage }) => storage.getAlarm())
    expect(Number(renewsAt) - Date.now()).toBeLessThanOrEqual(3_600_000)
    await runDurableObjectAlarm(objectOf(own))
    await reaches(host, 'trade')
  })
})

describe('a webhook whose alarm was lost', () => {
  const armedFor = (own: Trader) => runInDurableObject(objectOf(own), (_, { storage }) => storage.getAlarm())
  const runCron = (minute: number) => {
    const controller = createScheduledController({ scheduledTime: minute * 60_000, cron: '* * * * *' })
    return (worker as ExportedHandler<Env>).scheduled?.(controller, env, createExecutionContext())
  }

  it('a webhook whose alarm was lost gets the next event of its agent', async () => {
    const host = 'unarmed.hooks.example'
    const { own, webhookId } = await newWebhook(host, { eventTypes: 'trade' })
    await vi.waitFor(async () => expect((await find(webhookId, own)).nextAttemptAt).toBeFalsy(), WAIT)
    await loseAlarm(objectOf(own))
    await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    await indexer().catchUp()
    await reaches(host, 'trade')
  })

  it('a webhook whose alarm was lost before a retry is armed again by the cron trigger, in the minute of its agent', async () => {
    const host = 'late.hooks.example'
    receiver.respond.set(host, () => new Response(null, { status: 500 }))
    const { own, webhookId } = await newWebhook(host, { eventTypes: 'trade' })
    await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    await vi.waitFor(async () => expect((await find(webhookId, own)).failure).toBeTruthy(), WAIT)
    const minute = Number(own.agentId) % 60
    // Until nothing else arms it: an alarm that runs, or a notice of an event.
    await vi.waitFor(async () => {
      await loseAlarm(objectOf(own))
      await runCron(minute + 1)
      expect(Number(await armedFor(own))).toBeLessThan(Date.now() - 10_000)
    }, WAIT)
    await runCron(minute)
    expect(Number(await armedFor(own))).toBeGreaterThan(Date.now() - 10_000)
  })

  it('a webhook gets what the log could not publish before its alarm was lost, once the cron trigger wakes the index', async () => {
    const host = 'unpublished.hooks.example'
    const { own } = await newWebhook(host, { eventTypes: 'trade' })
    const log = env.EVENT_STREAMS.getByName(`${deployment.chainId}`)
    const renameTable = (from: string, to: string) =>
      runInDurableObject(log, (_, { storage }) => void storage.sql.exec(`ALTER TABLE ${from} RENAME TO ${to}`))
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await renameTable('entry', 'lost')
    await openPosition(own, { symbol: 'MSFT', usdcAmount: '100' })
    await indexer().catchUp()
    await vi.waitFor(async () => expect((await log.status()).isFailing).toBe(true), WAIT)
    await loseAlarm(log)
    await renameTable('lost', 'entry')
    await runCron(Number(own.agentId) + 1)
    await reaches(host, 'trade')
  })
})

describe('a webhook that is created next to the deletion of the last other one', () => {
  it('a webhook that is created next to the deletion of the last other one gets its first event at once', async () => {
    const { own, webhookId } = await newWebhook('last.hooks.example', { eventTypes: 'trade' })
    const object = objectOf(own)
    const { address: account } = own.account
    const message = {
      account,
      deadline: 9_999_999_999,
      chainTime: 0,
      party: 'owner',
    } as const
    const creation = { ...message, digest: '0x0a', url: 'https://next.hooks.example/events', eventTypes: ['trade'] }
    const results = await Promise.all([
      object.create(creation),
      object.change({ ...message, digest: '0x0b', webhookId, action: 'delete' }),
    ])
    expect(results.map(({ kind }) => kind)).toEqual(['done', 'done'])
    await openPosition(own, { symbol: 'NVDA', usdcAmount: '100' })
    await reaches('next.hooks.example', 'trade')
  })
})

describe('a creation is refused', () => {
  it('a creation is refused while the deployment has no place for a second one, and an owner has its first nevertheless', async () => {
    const log = env.EVENT_STREAMS.getByName(`${deployment.chainId}`)
    const others = (places: number, max: number) => log.setWebhookCounts(999_999, { active: places, places }, max)
    const { places } = await log.webhookUsage(0)
    expect(await others(1_001 - places, 1_000)).toBeUndefined()
    expect(await others(1_000 - places, 1_000)).toBeDefined()
    const { own, webhookId } = await newWebhook('full.hooks.example')
    const refused = await create({ url: 'https://full.hooks.example/second' }, own)
    expect([refused.status, refused.body.code]).toEqual([503, 'WEBHOOKS_FULL'])
    // A disabled webhook returns its place.
    await others(999 - places, 1_000)
    receiver.respond.set('full.hooks.example', () => new Response(null, { status: 410 }))
    await openPosition(own, { symbol: 'AAPL', usdcAmount: '100' })
    await vi.waitFor(async () => expect((await find(webhookId, own)).state).toBe('disabled'), WAIT)
    await vi.waitFor(async () => expect((await log.webhookUsage(0)).places).toBe(999), WAIT)
    const next = [await create({ url: 'https://next.hooks.example/' }, own)]
    next.push(await create({ url: 'https://next.hooks.example/second' }, own), await change(webhookId, 'enable', own))
    expect(next.map(({ status }) => status)).toEqual([201, 503, 503])
    await others(0, 1_000)
    receiver.respond.delete('full.hooks.example')
    expect((await change(webhookId, 'enable', own)).status).toBe(201)
  })

  it('a creation is refused while its signer has a thousand messages that are still valid, and the owner still creates, lists and deletes', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    const [asSigner, asOwner] = [
      { agentId, account: signer },
      { agentId, account: owner },
    ]
    const { body: quote } = await callOverHttp('getWebhookListQuote', { agentId })
    await runInDurableObject(objectOf(asOwner), (_, { storage }) => {
      for (let count = 0; count < 1_000; count++)
        storage.sql.exec(
          `INSERT INTO message VALUES (?, ?, ?, '', '{}')`,
          `${count}`,
          Number(quote.asOf.blockTimestamp) + 1_000 + count,
          signer.address,
        )
    })
    const { status, body } = await create({ url: 'https://messages.hooks.example/' }, asSigner)
    expect([status, body.code]).toEqual([429, 'TOO_MANY_WEBHOOK_MESSAGES'])
    // As long as the first of them is valid, by the chain's clock.
    expect(body.retryAfterSeconds).toBeGreaterThan(900)
    expect(body.retryAfterSeconds).toBeLessThanOrEqual(1_001)
    const created = await create({ url: 'https://messages.hooks.example/' }, asOwner)
    expect(created.status).toBe(201)
    expect(await list(asOwner)).toHaveLength(1)
    expect((await change(created.body.webhook.webhookId, 'delete', asOwner)).status).toBe(201)
  })

  it('a creation is refused while the resolver or the object cannot be reached', async () => {
    receiver.addresses.set('unresolved.hooks.example', 'unreachable')
    const unresolved = await create({ url: 'https://unresolved.hooks.example/' })
    expect([unresolved.status, unresolved.body.code]).toEqual([503, 'WEBHOOKS_UNAVAILABLE'])
    const broken = { getByName: () => ({ list: () => Promise.reject(new Error('overloaded')) }) }
    const app = appWith({}, { WEBHOOKS: broken as unknown as Env['WEBHOOKS'] })
    const { agentId } = trader
    const body = await signedBody('getWebhookListQuote', { agentId }, trader.account, app)
    expect((await callOverHttp('listWebhooks', { agentId, ...body }, app)).body.code).toBe('WEBHOOKS_UNAVAILABLE')
  })
})

describe('who may', () => {
  it('who may see and change a webhook of the owner is only the owner', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    const [asSigner, asOwner] = [
      { agentId, account: signer },
      { agentId, account: owner },
    ]
    const ofOwner = (await create({ url: 'https://owner.hooks.example/' }, asOwner)).body.webhook
    const ofSigner = (await create({ url: 'https://signer.hooks.example/' }, asSigner)).body.webhook
    expect([ofOwner.createdBy, ofSigner.createdBy]).toEqual(['owner', 'signer'])
    expect((await list(asOwner)).map(({ webhookId }) => webhookId)).toEqual([ofOwner.webhookId, ofSigner.webhookId])
    expect((await list(asSigner)).map(({ webhookId }) => webhookId)).toEqual([ofSigner.webhookId])
    const refused = await change(ofOwner.webhookId, 'delete', asSigner)
    expect([refused.status, refused.body.code]).toEqual([404, 'WEBHOOK_NOT_FOUND'])
    expect((await change(ofSigner.webhookId, 'delete', asOwner)).status).toBe(201)
  })

  it('who may create one is not a stranger, and not with a message that was changed or expired', async () => {
    const { agentId } = trader
    const url = 'https://refused.hooks.example/'
    const stranger = newAccount()
    const codeOf = async (body: Body) => (await callOverHttp('createWebhook', { agentId, ...body })).body.code
    expect(await codeOf(await signedBody('getWebhookQuote', { agentId, url }, stranger))).toBe('INVALID_SIGNATURE')
    const body = await signedBody('getWebhookQuote', { agentId, url })
    expect(await codeOf({ ...body, url: 'https://thief.hooks.example/' })).toBe('INVALID_SIGNATURE')
    expect(await codeOf({ ...body, eventTypes: ['trade'] })).toBe('INVALID_SIGNATURE')
    const { body: quote } = await callOverHttp('getWebhookQuote', { agentId, url })
    const withDeadline = async (deadline: string) => {
      const typedData = { ...quote.typedData, message: { ...quote.typedData.message, deadline } }
      return { ...quote.body, deadline, signature: await sign(trader.account, typedData) }
    }
    expect(await codeOf(await withDeadline('1'))).toBe('EXPIRED_DEADLINE')
    expect(await codeOf(await withDeadline(`${Number(quote.serverTime) + 90_000}`))).toBe('WEBHOOK_DEADLINE_TOO_FAR')
    const verdict = await callOverHttp('verifySignature', {
      primaryType: 'CreateWebhook',
      agentId,
      intent: { ...quote.body },
      signature: body.signature,
    })
    expect(verdict.body).toMatchObject({ valid: false, warnings: [] })
  })

  it('who may have more than five webhooks is nobody; a signer that has five leaves five to the owner', async () => {
    const [signer, owner] = [newAccount(), newAccount()]
    const { agentId } = await newOwnedTrader(signer, owner)
    const created = []
    for (let count = 0; count < 6; count++)
      created.push(await create({ url: `https://limit.hooks.example/${count}` }, { agentId, account: signer }))
    expect(created.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 409])
    expect(created[5]?.body).toMatchObject({ code: 'TOO_MANY_WEBHOOKS', details: { max: 5, party: 'signer' } })
    const asOwner = { agentId, account: owner }
    expect((await create({ url: 'https://limit.hooks.example/owner' }, asOwner)).status).toBe(201)
    await change(created[0]?.body.webhook.webhookId, 'delete', asOwner)
    const again = await create({ url: 'https://limit.hooks.example/6' }, { agentId, account: signer })
    expect(again.status).toBe(201)
  })
})

it('an operator sees which agents take places, and frees them with a reason that the owner reads', async () => {
  const { own, webhookId } = await newWebhook('freed.hooks.example')
  const app = appWith({ OPERATOR_SECRET: 'operator-of-webhooks', MAX_WEBHOOKS: '77' })
  const send = async (path: string, body?: object, secret = 'operator-of-webhooks') => {
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const init = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers }
    const response = await request(`/operator/webhooks${path}`, init, app)
    return { status: response.status, body: (await response.json()) as Body }
  }
  expect((await send('', undefined, 'guess')).status).toBe(401)
  const before = (await send('')).body
  expect(before).toMatchObject({
    maxPlaces: 77,
    agents: expect.arrayContaining([{ agentId: own.agentId, active: 1, places: 1 }]),
  })
  expect((await send(`/${own.agentId}`)).body.webhooks).toMatchObject([{ webhookId, state: 'active' }])
  expect((await send(`/${own.agentId}/free`, {})).status).toBe(400)
  const freed = await send(`/${own.agentId}/free`, { reason: 'It was not used.' })
  const disabledReason = 'The operator disabled it: It was not used.'
  expect(freed).toMatchObject({ status: 200, body: { webhooks: [{ webhookId, state: 'disabled', disabledReason }] } })
  expect(JSON.stringify(freed.body)).not.toContain('whsec_')
  expect((await send('')).body.places).toBe(before.places - 1)
  expect(await find(webhookId, own)).toMatchObject({ state: 'disabled', disabledReason })
})

it.each([
  'http://agents.example/',
  'https://127.0.0.1/',
  'https://0x7f000001/',
  'https://[::ffff:10.0.0.1]/',
  'https://169.254.169.254/latest/meta-data/',
  'https://localhost./',
  'https://agents.example:8443/',
])('refuses %s before anything is signed', async url => {
  const { status, body } = await callOverHttp('getWebhookQuote', { agentId: trader.agentId, url })
  expect([status, body.code]).toEqual([400, 'WEBHOOK_URL_REFUSED'])
})

it('accepts a local target only where the operator of an embedded chain allows it', async () => {
  const input = { agentId: trader.agentId, url: 'http://127.0.0.1:8080/events' }
  const allowed = await callOverHttp('getWebhookQuote', input, appWith({ WEBHOOK_LOCAL_TARGETS: 'true' }))
  const onRealChain = appWith({ WEBHOOK_LOCAL_TARGETS: 'true', DEVELOPMENT_CHAIN: 'false' })
  expect(allowed.status).toBe(200)
  expect((await callOverHttp('getWebhookQuote', input, onRealChain)).body.code).toBe('WEBHOOKS_NOT_CONFIGURED')
})
