import { randomBytes } from 'node:crypto'
import type { Hex } from 'viem'
import type { Config } from '../../src/config/config.ts'
import { PRICES, type RequestKind, SESSION_UNITS, SUBSCRIPTION_UNITS } from '../../src/limits/prices.ts'
import type { Agent, Json, Stranger } from './client.ts'

// What strangers can send, one row of the table each. `run` does the work of one unit and is measured; `perHour` is how
// many units the limits allow in an hour, so cost times number is the bill.

/** Who bears the cost: an address, for free, or whoever paid a dollar, which is the fee of one agent. */
type Payer = 'an address' | 'a dollar'

export type RequestClass = {
  name: string
  payer: Payer
  /** How many units the limits allow in an hour, and the limit that decides. */
  perHour(limits: Limits): { units: number; limit: string }
  /** How many objects it can keep active for the whole hour, beyond the time of the units. */
  heldObjects?: number
  /**
   * How many units are measured, 20 by default: of work that takes no time, more, or the idle service's work is not
   * small.
   */
  measured?: number
  /** The status of a unit, which shows that the measured work is that of the class. */
  status: number
  /** Prepares the units, which is not measured. Returns the function that does the unit with an index. */
  prepare(
    stranger: Stranger,
    agents: readonly Agent[],
    units: number,
  ): Promise<(index: number) => Promise<{ status: number; transactionHashes?: readonly Hex[] }>>
}

/** The limits of the default configuration. */
export type Limits = Pick<Config, 'requestBudgets' | 'gasBudgets'> & { gasPerUnit: number }

/** How many requests of this cost an address may send. */
const atUnits =
  (units: number) =>
  ({ requestBudgets: { address } }: Limits) => ({
    units: Math.floor((address * 60) / units),
    limit: `${address} units a minute, each is ${units}`,
  })
const ofKind = (kind: RequestKind) => atUnits(PRICES[kind])

/** What an account may sign. */
const bySigner = ({ requestBudgets: { account } }: Limits) => ({
  units: Math.floor((account * 60) / PRICES.signer),
  limit: `${account} units of an account a minute, each is ${PRICES.signer}`,
})

export const MANY_UNITS = 500

/** The first hour of an agent: its unused budgets hold the gas of an hour, and refill in it. */
const byGasOf =
  (...budgets: ('agent' | 'exitReserve')[]) =>
  ({ gasBudgets, gasPerUnit, ...limits }: Limits) => {
    const gas = budgets.reduce((sum, budget) => sum + 2 * gasBudgets[budget].perHour, 0)
    const units = Math.floor(gas / Math.max(1, gasPerUnit))
    const signed = bySigner({ gasBudgets, gasPerUnit, ...limits })
    return units < signed.units
      ? { units, limit: `gas of ${budgets.map(budget => `\`${budget}\``).join(' and ')}` }
      : signed
  }

const LADDERS = ['-800:10000', '-700:10000']
const MCP = { accept: 'application/json, text/event-stream' }
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'stranger', version: '1' } },
}

/** Opens a session and uses it once, so that it exists. Returns its headers. */
async function openSession(stranger: Stranger): Promise<Record<string, string>> {
  const { headers, status } = await stranger.send('/mcp', initialize, { headers: MCP })
  const session = { ...MCP, 'mcp-session-id': headers.get('mcp-session-id') ?? '' }
  const used = await stranger.send(
    '/mcp',
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { headers: session },
  )
  if (status !== 200 || used.status !== 202) throw new Error(`a session is refused: ${JSON.stringify(used.body)}`)
  return session
}

async function prepareRegistrations(stranger: Stranger, units: number): Promise<Json[]> {
  const bodies: Json[] = []
  for (let unit = 0; unit < units; unit++) bodies.push(await stranger.registration(stranger.newAccount()))
  return bodies
}

/** Returns the submission of an intent whose body was signed beforehand. */
async function prepareIntents(
  stranger: Stranger,
  agents: readonly Agent[],
  kind: string,
  inputOf: (agent: Agent, index: number) => Promise<Record<string, string>>,
  method: 'POST' | 'PUT' = 'POST',
) {
  const bodies: Json[] = []
  // One after the other: only so many requests of an address are worked on at a time.
  for (const [index, agent] of agents.entries()) {
    const quote = `/agents/${agent.agentId}/${kind}/quote?${new URLSearchParams(await inputOf(agent, index))}`
    bodies.push(await stranger.signed(agent.account, quote))
  }
  return (index: number) => stranger.send(`/agents/${agents[index]?.agentId}/${kind}`, bodies[index], { method })
}

const positionOf = async (stranger: Stranger, { agentId }: Agent): Promise<string> =>
  (await stranger.expectOk(`/agents/${agentId}/positions`)).positions[0].positionId

const withHash = (send: (index: number) => Promise<{ status: number; body: Json }>) => async (index: number) => {
  const { status, body } = await send(index)
  return { status, transactionHashes: [body?.transactionHash] }
}

/** In this order: later classes use what earlier ones leave. */
export const CLASSES: RequestClass[] = [
  {
    name: 'registration',
    payer: 'a dollar',
    perHour: () => ({ units: 1, limit: 'the fee of 1 USDC' }),
    status: 201,
    async prepare(stranger, _, units) {
      const bodies = await prepareRegistrations(stranger, units)
      return withHash(index => stranger.send('/agents/register', bodies[index], { pays: true }))
    },
  },
  {
    name: 'registration without payment',
    payer: 'an address',
    perHour: ofKind('registrations'),
    status: 402,
    async prepare(stranger, _, units) {
      const bodies = await prepareRegistrations(stranger, units)
      return index => stranger.send('/agents/register', bodies[index])
    },
  },
  {
    name: 'open',
    payer: 'a dollar',
    perHour: byGasOf('agent'),
    status: 201,
    prepare: async (stranger, agents) =>
      withHash(
        await prepareIntents(stranger, agents, 'trade-intents', async () => ({
          symbol: 'NVDA',
          usdcAmount: '100',
          exits: LADDERS[0] as string,
        })),
      ),
  },
  {
    name: 'order, placed and executed',
    payer: 'a dollar',
    perHour: byGasOf('agent'),
    status: 201,
    async prepare(stranger, agents) {
      const place = await prepareIntents(stranger, agents, 'orders', async () => ({
        type: 'twap',
        symbol: 'AAPL',
        usdcAmount: '100',
        parts: '1',
        interval: '0',
      }))
      return async index => {
        const { status, body } = await place(index)
        if (status !== 201) return { status }
        return {
          status,
          transactionHashes: [body.transactionHash, await stranger.execution(body.orderId)],
        }
      }
    },
  },
  {
    name: 'ladder',
    payer: 'a dollar',
    perHour: byGasOf('agent'),
    status: 201,
    prepare: async (stranger, agents) =>
      withHash(
        await prepareIntents(stranger, agents, 'exit-ladder-intents', async agent => ({
          positionId: await positionOf(stranger, agent),
          exits: LADDERS[1] as string,
        })),
      ),
  },
  {
    name: 'refused simulation',
    payer: 'a dollar',
    perHour: bySigner,
    status: 400,
    prepare: (stranger, agents) =>
      prepareIntents(stranger, agents, 'trade-intents', async () => ({ symbol: 'MSFT', usdcAmount: '90000000' })),
  },
  {
    name: 'refused signature',
    payer: 'an address',
    perHour: ofKind('submissions'),
    measured: MANY_UNITS,
    status: 400,
    async prepare(stranger, agents) {
      const [{ agentId, account }] = agents as [Agent]
      const path = `/agents/${agentId}/trade-intents`
      const body = await stranger.signed(account, `${path}/quote?symbol=AAPL&usdcAmount=10`)
      return () => stranger.send(path, { ...body, signature: `0x${randomBytes(64).toString('hex')}1b` })
    },
  },
  {
    name: 'signature, explained',
    payer: 'an address',
    perHour: ofKind('signatureSearches'),
    measured: 40,
    status: 200,
    async prepare(stranger, agents) {
      const [{ agentId, account }] = agents as [Agent]
      const quote = `/agents/${agentId}/trade-intents/quote?symbol=AAPL&usdcAmount=10`
      const { signature: _, ...intent } = await stranger.signed(account, quote)
      return () =>
        stranger.send('/signing/verify', {
          primaryType: 'OpenPosition',
          agentId,
          intent,
          signature: `0x${randomBytes(64).toString('hex')}1b`,
        })
    },
  },
  {
    name: 'quote of an open',
    payer: 'an address',
    perHour: ofKind('quotes'),
    measured: MANY_UNITS,
    status: 200,
    prepare: async (stranger, agents) => index =>
      stranger.send(
        `/agents/${agents[index % agents.length]?.agentId}/trade-intents/quote?symbol=AAPL&usdcAmount=${10 + index}`,
      ),
  },
  {
    name: 'reduce',
    payer: 'a dollar',
    perHour: byGasOf('agent', 'exitReserve'),
    status: 201,
    prepare: async (stranger, agents) =>
      withHash(
        await prepareIntents(stranger, agents, 'reduce-intents', async agent => ({
          positionId: await positionOf(stranger, agent),
          exitBps: '5000',
        })),
      ),
  },
  {
    name: 'owner message',
    payer: 'a dollar',
    perHour: byGasOf('agent'),
    status: 200,
    prepare: async (stranger, agents) =>
      withHash(
        await prepareIntents(stranger, agents, 'mandate', async () => ({ mode: 'trade', maxTradeUsdc: '500' }), 'PUT'),
      ),
  },
  {
    name: 'MCP call in a session',
    payer: 'an address',
    perHour: atUnits(PRICES.reads + SESSION_UNITS),
    measured: 300, // a session has no more in ten seconds
    status: 200,
    async prepare(stranger, agents) {
      const session = await openSession(stranger)
      return index =>
        stranger.send(
          '/mcp',
          {
            jsonrpc: '2.0',
            id: index + 2,
            method: 'tools/call',
            params: { name: 'svc_get_agent', arguments: { agentId: agents[0]?.agentId } },
          },
          { headers: session },
        )
    },
  },
  {
    name: 'MCP session, opened and used once',
    payer: 'an address',
    perHour: ofKind('mcpSessions'),
    measured: 100,
    status: 200,
    prepare: async stranger => async () => {
      await openSession(stranger)
      return { status: 200 }
    },
  },
]

CLASSES.push(
  {
    name: 'MCP session, ended again',
    payer: 'an address',
    perHour: atUnits(PRICES.reads + SESSION_UNITS),
    measured: MANY_UNITS,
    status: 404,
    async prepare(stranger) {
      const headers = await openSession(stranger)
      const end = () => stranger.send('/mcp', undefined, { method: 'DELETE', headers })
      await end()
      return end
    },
  },
  {
    name: 'MCP subscription, made or ended',
    payer: 'an address',
    perHour: atUnits(SUBSCRIPTION_UNITS + SESSION_UNITS),
    measured: 100,
    status: 200,
    async prepare(stranger, agents) {
      const session = await openSession(stranger)
      const uri = `svc://agents/${agents[0]?.agentId}/positions`
      return index => {
        const method = index % 2 === 0 ? 'resources/subscribe' : 'resources/unsubscribe'
        return stranger.send('/mcp', { jsonrpc: '2.0', id: index + 2, method, params: { uri } }, { headers: session })
      }
    },
  },
  {
    name: 'MCP session with a listen stream',
    payer: 'an address',
    perHour: ofKind('streams'),
    measured: 100,
    heldObjects: 4, // SESSION_STREAMS of the hub
    status: 200,
    async prepare(stranger) {
      const session = await openSession(stranger)
      return async () => {
        const close = await stranger.open('/mcp', { ...session, accept: 'text/event-stream' })
        close()
        return { status: 200 }
      }
    },
  },
  {
    name: 'event stream',
    payer: 'an address',
    perHour: ofKind('streams'),
    measured: 100,
    heldObjects: 2, // one shard, and the event log that it asks every fifteen seconds
    status: 200,
    prepare: async (stranger, agents) => async () => {
      const close = await stranger.open(`/agents/${agents[0]?.agentId}/events`)
      close()
      return { status: 200 }
    },
  },
  {
    name: 'webhook, tested',
    payer: 'a dollar',
    perHour: bySigner,
    heldObjects: 1,
    status: 201,
    async prepare(stranger, agents, units) {
      const [{ agentId, account }] = agents as [Agent]
      const path = `/agents/${agentId}/webhooks`
      const url = encodeURIComponent('http://127.0.0.1:9/events')
      const { webhook } = await stranger.expectOk(path, await stranger.signed(account, `${path}/quote?url=${url}`))
      const change = `${path}/${webhook.webhookId}`
      const bodies: Json[] = []
      for (let unit = 0; unit < units; unit++)
        bodies.push(await stranger.signed(account, `${change}/quote?action=test`))
      return index => stranger.send(change, bodies[index])
    },
  },
  {
    name: 'leaderboard page',
    payer: 'an address',
    perHour: atUnits(10),
    measured: MANY_UNITS,
    status: 200,
    prepare: async stranger => index => stranger.send(`/leaderboard?limit=${50 + (index % 50)}`),
  },
  {
    name: 'statistics of all time',
    payer: 'an address',
    perHour: ofKind('reads'),
    measured: MANY_UNITS,
    status: 200,
    prepare: async (stranger, agents) => index =>
      stranger.send(`/agents/${agents[index % agents.length]?.agentId}/stats?period=all`),
  },
  {
    name: 'equity of an agent',
    payer: 'an address',
    perHour: atUnits(34), // 168 points, of which five are a read
    measured: MANY_UNITS,
    status: 200,
    prepare: async (stranger, agents) => index =>
      stranger.send(`/agents/${agents[index % agents.length]?.agentId}/equity-history?interval=5m`),
  },
  {
    name: 'what-if of an intent',
    payer: 'an address',
    perHour: atUnits(10),
    measured: MANY_UNITS,
    status: 200,
    prepare: async (stranger, agents) => index =>
      stranger.send(`/agents/${agents[index % agents.length]?.agentId}/what-if`, {
        prices: { NVDA: '110' },
        intents: [{ kind: 'open', symbol: 'NVDA', usdcAmount: '10', exits: [{ triggerBps: -800, exitBps: 10_000 }] }],
      }),
  },
  {
    name: 'page of candles',
    payer: 'an address',
    perHour: ofKind('reads'),
    measured: MANY_UNITS,
    status: 200,
    prepare: async stranger => index => stranger.send(`/prices/NVDA/candles?interval=1m&limit=${500 + (index % 500)}`),
  },
  {
    name: 'CSV of trades',
    payer: 'an address',
    perHour: ofKind('reads'),
    measured: MANY_UNITS,
    status: 200,
    prepare: async (stranger, agents) => index =>
      stranger.send(`/agents/${agents[index % agents.length]?.agentId}/trades?format=csv&limit=${50 + (index % 50)}`),
  },
)
