import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import {
  createTaskSessionFromClient,
  type RawClientDispatch,
  resultFromTaskOutcome,
  type TaskEnabledSession,
} from '@modelcontextprotocol/ext-tasks/client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import { prepareService, type Service } from '../faults/service.ts'
import type { Body } from '../support/body.ts'
import { type CallTool, sign, succeed, type ToolResult, ToolTrader } from '../support/mcp-client.ts'

// The extension for tasks, with the official client of it, which declares it in every request.

let devnet: Devnet
let service: Service
let prepared: Awaited<ReturnType<typeof prepareService>>
let client: Client
let session: TaskEnabledSession
beforeAll(async () => {
  prepared = await prepareService()
  devnet = await startDevnet({ blockMs: 150 })
  service = await prepared.start({
    ...workerVars(devnet.deployment),
    ...unlimitedGas,
    X402_ENABLED: 'false',
    SUBMISSION_TIMEOUT_MS: '1500',
  })
  client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)))
  session = createTaskSessionFromClient(client, {
    endpointId: 'service',
    rawDispatch: dispatch,
    v2RequestFraming: framing,
  })
})
afterAll(async () => {
  await session?.close()
  await client?.close()
  await service?.stop()
  await devnet?.stop()
  prepared?.remove()
})

const framing = { protocolVersion: '2026-07-28', clientInfo: { name: 'test', version: '1' }, clientCapabilities: {} }
type Message = { method: string; params: { name?: string; taskId?: string } }
/** The SDK's client refuses results that are tasks, so the session sends its requests itself. */
const dispatch: RawClientDispatch = async request => {
  const { error, result } = await post(request as Message)
  return error ? { kind: 'error', error } : { kind: 'result', result }
}
async function post({ method, params }: Message): Promise<Body> {
  const response = await fetch(`${service.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      'mcp-name': params.name ?? params.taskId ?? '',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await response.text()
  return JSON.parse(text.replace(/^(event: .*\n)?data: /, ''))
}

/** Calls a tool as a task, if the service makes it one, and returns its result and the states of the task. */
async function callInTask(name: string, input: Record<string, unknown>, meanwhile = async () => {}) {
  const execution = await session.callTool(name, input as never)
  const states: string[] = []
  await meanwhile()
  const { outcome } = await execution.settle({
    onEvent: event => void (event.type === 'task' && states.push(event.task.status)),
  })
  return { states, result: resultFromTaskOutcome(outcome) as ToolResult }
}
const call: CallTool = (name, input) => client.callTool({ name, arguments: input }) as Promise<ToolResult>
async function newTrader(): Promise<ToolTrader> {
  const trader = new ToolTrader(call)
  await trader.register()
  return trader
}
const purchase = { symbol: 'NVDA', usdcAmount: '10', exits: [{ triggerBps: -800, exitBps: 10_000 }] }

it('a wait for an event is a task that ends with the event, which may come between two polls', async () => {
  const trader = await newTrader()
  const wait = { agentId: trader.agentId, types: ['trade'], timeoutSeconds: 600 }
  const { states, result } = await callInTask('svc_wait_for_event', wait, async () => {
    await trader.trade('trade', purchase)
  })
  expect(states).toContain('working')
  expect(await succeed(Promise.resolve(result))).toMatchObject({
    event: { type: 'trade', data: { agentId: trader.agentId, symbol: 'NVDA' } },
    lastEventId: expect.stringMatching(/^\d+-\d+/),
  })
})

it('a wait that no event ends returns no event and where to resume, once its seconds are over', async () => {
  const { agentId } = await newTrader()
  const { states, result } = await callInTask('svc_wait_for_event', { agentId, types: ['exit'], timeoutSeconds: 2 })
  expect(states).toContain('working')
  expect(result.structuredContent).toEqual({ event: null, lastEventId: expect.stringMatching(/^\d+-\d+/) })
})

it('a submission whose outcome is not known in time is a task that ends with its receipt, and trades once', async () => {
  const trader = await newTrader()
  const { agentId, account } = trader
  const quote = await succeed(call('svc_get_trade_intent_quote', { agentId, ...purchase, detail: 'full' }))
  const input = { agentId, ...quote.body, signature: await sign(account, quote.typedData) }
  await devnet.setMining(false)
  const submitted = callInTask('svc_submit_trade_intent', input)
  const plain = await call('svc_submit_trade_intent', input)
  expect([plain.isError, JSON.parse(plain.content[0]?.text ?? '')]).toMatchObject([
    true,
    { code: 'SUBMISSION_UNKNOWN' },
  ])
  await devnet.setMining(true)
  const { states, result } = await submitted
  expect(states).toContain('working')
  const receipt = await succeed(Promise.resolve(result))
  expect(receipt).toMatchObject({ positionId: expect.stringMatching(/^\d+$/) })
  const { positions } = await succeed(call('svc_get_agent_positions', { agentId }))
  expect(positions).toMatchObject([{ positionId: receipt.positionId }])
})

it('a read, a refusal and a submission that is mined in time are no tasks', async () => {
  const trader = await newTrader()
  const { agentId, account } = trader
  const quote = await succeed(call('svc_get_trade_intent_quote', { agentId, ...purchase, detail: 'full' }))
  const input = { agentId, ...quote.body, signature: await sign(account, quote.typedData) }
  for (const [name, given, isError] of [
    ['svc_whoami', { agentId }, false],
    ['svc_submit_trade_intent', { ...input, nonce: '77' }, true],
    ['svc_submit_trade_intent', input, false],
  ] as const) {
    const { states, result } = await callInTask(name, given)
    expect([name, states, result.isError]).toEqual([name, [], isError])
  }
})

it('a client that does not declare tasks gets results, and its task requests are refused with the missing capability', async () => {
  const { agentId } = await newTrader()
  const declared = { 'io.modelcontextprotocol/tasks': {} }
  const meta = (extensions: object) => ({
    _meta: {
      'io.modelcontextprotocol/protocolVersion': framing.protocolVersion,
      'io.modelcontextprotocol/clientInfo': framing.clientInfo,
      'io.modelcontextprotocol/clientCapabilities': { extensions },
    },
  })
  const wait = { name: 'svc_wait_for_event', arguments: { agentId, timeoutSeconds: 1 } }
  const forged = (changes: object) =>
    Buffer.from(JSON.stringify({ ...wait, createdAt: 0, ttlMs: 0, ...changes })).toString('base64url')
  const { result } = await post({ method: 'tools/call', params: { ...wait, ...meta({}) } })
  expect(result).toMatchObject({ resultType: 'complete', structuredContent: { event: null } })
  const created = await post({ method: 'tools/call', params: { ...wait, ...meta(declared) } })
  const { taskId } = created.result
  expect(created.result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: 1_000 })
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    expect(await post({ method, params: { taskId, ...meta({}) } })).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: { extensions: declared } } },
    })
    for (const unknown of [
      '786512e2-9e0d-44bd-8f29-789f320fe840',
      'e30',
      forged({ createdAt: 9e15 }),
      forged({ ttlMs: -1 }),
    ])
      expect(await post({ method, params: { taskId: unknown, ...meta(declared) } })).toMatchObject({
        error: { code: -32602, message: expect.stringContaining('taskId') },
      })
  }
  for (const method of ['tasks/update', 'tasks/cancel'])
    expect(await post({ method, params: { taskId, ...meta(declared) } })).toMatchObject({
      result: { resultType: 'complete' },
    })
})
