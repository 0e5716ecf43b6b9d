import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { formatUnits, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { payerOf } from '../client/payer.ts'
import { freePort } from '../devnet/anvil.ts'
import { DEPLOYMENT_FILE, type Devnet, startDevnet } from '../devnet/index.ts'
import { startWorker, type Worker } from '../devnet/worker.ts'
import { workerVars } from '../devnet/worker-vars.ts'

// `npm run demo`: starts the chain and the service, and trades as one agent: first over the HTTP API, then with MCP tools.
// Every line comes from a real response, every transaction is confirmed, and an unexpected result exits with code 1.
// `--keep` leaves everything running and prints the addresses.

const { keep } = parseArgs({ options: { keep: { type: 'boolean', default: false } } }).values
const started = Date.now()

// biome-ignore lint/suspicious/noExplicitAny: responses of an API, which the steps check as they read them
type Json = any
type Service = { url: string; get(path: string): Promise<Json>; post(path: string, body: Json): Promise<Json> }

const say = (text: string) => console.log(text)
const usdc = (baseUnits: string | bigint) => `${formatUnits(BigInt(baseUnits), 6)} USDC`
const percent = (bps: number) => `${bps / 100} %`

function serviceAt(url: string, send: (request: Request) => Promise<Response> = fetch): Service {
  const request = async (path: string, init?: RequestInit) => {
    const response = await send(new Request(url + path, init))
    const body: Json = await response.json()
    if (!response.ok)
      throw new Error(`${init?.method ?? 'GET'} ${path} returned ${response.status}: ${JSON.stringify(body)}`)
    return body
  }
  return {
    url,
    get: path => request(path),
    post: (path, body) =>
      request(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  }
}

type Kind = 'trade_intent' | 'add_intent' | 'reduce_intent' | 'exit_ladder_intent'
/** Calls operations by their tool name, over HTTP or MCP. */
type Surface = { call(tool: string, input: Json): Promise<Json> }

/** Maps tools to routes: quotes are GET and submissions POST requests below the agent. */
const httpSurface = (service: Service): Surface => ({
  call(tool, { agentId, ...input }) {
    const [, verb, kind = ''] = /^svc_(get|submit)_(.+?)(?:_quote)?$/.exec(tool) ?? []
    const path = `/agents/${agentId}/${kind.replaceAll('_', '-')}s`
    return verb === 'submit' ? service.post(path, input) : service.get(`${path}/quote?${new URLSearchParams(input)}`)
  },
})

async function mcpSurface(url: string): Promise<Surface & { close(): Promise<void> }> {
  const client = new Client({ name: 'demo', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)))
  say(`  ${(await client.listTools()).tools.length} tools at ${url}/mcp`)
  return {
    close: () => client.close(),
    async call(tool, input) {
      const { isError, structuredContent, content } = await client.callTool({ name: tool, arguments: input })
      if (isError) throw new Error(`${tool} returned ${JSON.stringify(content)}`)
      return structuredContent
    },
  }
}

/** Asks until the transaction is mined and asserts that it succeeded. */
async function confirm(service: Service, hash: Hex): Promise<string> {
  const { status, blockNumber } = await service.get(`/transactions/${hash}`)
  assert.equal(status, 'success', `transaction ${hash} is ${status}`)
  return `in block ${blockNumber}, transaction ${hash.slice(0, 10)}…`
}

const POLL_TIMEOUT_MS = 20_000

/** Polls until the value is as expected; throws after POLL_TIMEOUT_MS. */
async function pollUntil(read: () => Promise<Json>, isExpected: (value: Json) => boolean): Promise<Json> {
  const deadline = Date.now() + POLL_TIMEOUT_MS
  for (;;) {
    const value = await read()
    if (isExpected(value)) return value
    assert.ok(Date.now() < deadline, `still ${JSON.stringify(value)} after ${POLL_TIMEOUT_MS / 1000} s`)
    await sleep(200)
  }
}

async function trade(devnet: Devnet, service: Service) {
  const account = privateKeyToAccount(generatePrivateKey())
  const sign = ({ types: { EIP712Domain: _, ...types }, ...rest }: Json) => account.signTypedData({ ...rest, types })

  say('\nRegister')
  const { vaults } = await service.get('/vaults')
  const [genesis] = vaults
  say(`  vaults: ${vaults.map((vault: Json) => `${vault.name} (${usdc(vault.totalAssets)})`).join(', ')}`)
  const registration = new URLSearchParams({
    signer: account.address,
    vault: genesis.contractAddress,
    name: 'demo agent',
    metadataURI: 'https://agents.example/demo.json',
  })
  const terms = await service.get(`/agents/register/quote?${registration}`)
  const { registrationFee, x402 } = terms
  const payer = privateKeyToAccount(devnet.deployment.accounts.payer.privateKey)
  const payments: Json[] = []
  const paying = payerOf(payer, { network: x402.network, asset: registrationFee.tokenAddress }, async request => {
    const response = await fetch(request)
    const receipt = response.headers.get('payment-response')
    if (receipt) payments.push(JSON.parse(atob(receipt)))
    return response
  })
  const registered = await serviceAt(service.url, paying.fetch).post('/agents/register', {
    ...terms.body,
    signature: await sign(terms.typedData),
  })
  const [payment] = payments
  assert.deepEqual([payments.length, payment.success, payment.payer], [1, true, payer.address])
  say(`  fee of ${usdc(registrationFee.amount)} paid over x402, ${await confirm(service, payment.transaction)}`)
  const { agentId } = registered
  say(`  agent ${agentId} of ${account.address}, ${await confirm(service, registered.transactionHash)}`)
  const { agent } = await service.get(`/agents/${agentId}`)
  assert.deepEqual([agent.owner, agent.signer, agent.statusName], [account.address, account.address, 'Active'])

  /** Quotes, signs and submits an intent over a surface, and confirms its transaction. */
  const intendOver = (surface: Surface) => async (kind: Kind, input: Record<string, string>) => {
    const quote = await surface.call(`svc_get_${kind}_quote`, { agentId, ...input })
    assert.deepEqual(
      quote.checks.filter(({ pass }: Json) => !pass),
      [],
      'every check of the quote passes',
    )
    const signature = await sign(quote.typedData)
    const receipt = await surface.call(`svc_submit_${kind}`, { agentId, ...quote.body, signature })
    return {
      quote,
      positionId: receipt.positionId as string,
      confirmed: await confirm(service, receipt.transactionHash),
    }
  }
  const intend = intendOver(httpSurface(service))
  const position = async (id: string) => (await service.get(`/agents/${agentId}/positions/${id}`)).position

  say('\nOpen, add, change the ladder')
  const opened = await intend('trade_intent', { symbol: 'NVDA', usdcAmount: '500' })
  const first = opened.positionId
  const nvda = await position(first)
  assert.equal(nvda.usdcCostBasis, '500000000')
  say(`  NVDA at ${usdc(nvda.entryPriceUsdc)}: position ${first}, ${opened.confirmed}`)
  say(`    the largest accepted amount is ${usdc(opened.quote.maxUsdcAmount)}, limited by ${opened.quote.bindingRule}`)
  const added = await intend('add_intent', { positionId: first, usdcAmount: '200' })
  const larger = await position(first)
  assert.equal(larger.usdcCostBasis, '700000000')
  say(`  added 200 USDC: average entry ${usdc(larger.entryPriceUsdc)}, ${added.confirmed}`)
  const laddered = await intend('exit_ladder_intent', { positionId: first, exits: '-800:10000,2000:10000' })
  const { pendingRules } = await position(first)
  assert.deepEqual(
    pendingRules.map(({ triggerBps }: Json) => triggerBps),
    [-800, 2000],
  )
  say(
    `  ladder: ${pendingRules.map((r: Json) => `${r.triggerType} at ${percent(r.triggerBps)}`).join(', ')}, ${laddered.confirmed}`,
  )

  say('\nStopped out')
  const fall = (Number(larger.entryPriceUsdc) / 1e6) * 0.9
  await devnet.setPrice('NVDA', fall.toFixed(2))
  say(`  NVDA falls to ${fall.toFixed(2)}; the agent sends nothing`)
  const stopped = await pollUntil(
    () => position(first),
    ({ status }) => status === 'Closed',
  )
  assert.deepEqual([stopped.status, stopped.nextRuleIndex], ['Closed', 1])
  assert.equal(stopped.exitRules[0].triggerType, 'StopLoss')
  const { lastOutcome: exit } = await service.get(`/agents/${agentId}/positions/${first}/automation`)
  assert.equal(exit.outcome, 'executed')
  say(`  the keeper fires the stop-loss, ${await confirm(service, exit.transactionHash)}`)
  say(`  position ${first} is ${stopped.status}, ${usdc(stopped.realizedPnlUsdc)} realized`)

  say('\nReduce and close another position with MCP tools')
  const mcp = await mcpSurface(service.url)
  const intendAsTool = intendOver(mcp)
  const positionOf = async (id: string) =>
    (await mcp.call('svc_get_agent_position', { agentId, positionId: id })).position
  const second = (await intendAsTool('trade_intent', { symbol: 'AAPL', usdcAmount: '400' })).positionId
  const aapl = await positionOf(second)
  const rise = (Number(aapl.entryPriceUsdc) / 1e6) * 1.06
  await devnet.setPrice('AAPL', rise.toFixed(2))
  say(`  AAPL bought at ${usdc(aapl.entryPriceUsdc)} rises to ${rise.toFixed(2)}`)
  const reduced = await intendAsTool('reduce_intent', { positionId: second, exitBps: '5000' })
  say(`  half sold for about ${usdc(reduced.quote.estimate.usdcOut)}, ${reduced.confirmed}`)
  const closed = await intendAsTool('reduce_intent', { positionId: second, exitBps: '10000' })
  const won = await positionOf(second)
  assert.equal(won.status, 'Closed')
  assert.ok(BigInt(won.realizedPnlUsdc) > 0n, 'the position closed with a profit')
  say(`  the rest closed: ${usdc(won.realizedPnlUsdc)} realized, ${closed.confirmed}`)

  say('\nProfit and loss')
  const { positions: history } = await mcp.call('svc_list_closed_positions', { agentId })
  const { positions: left } = await mcp.call('svc_get_agent_positions', { agentId })
  const risk = await mcp.call('svc_get_risk_state', { agentId })
  await mcp.close()
  const realized = history.reduce((sum: bigint, closed: Json) => sum + BigInt(closed.realizedPnlUsdc), 0n)
  assert.deepEqual([history.length, left.length], [2, 0])
  assert.equal(risk.pnl.lifetimeRealizedUsdc, `${realized}`)
  for (const { symbol, realizedPnlUsdc } of history) say(`  ${symbol}: ${usdc(realizedPnlUsdc)}`)
  say(
    `  total ${usdc(realized)}, ${percent(risk.derived.returnBps)} of the allocation; equity ${usdc(risk.equity.currentUsdc)}`,
  )
}

let devnet: Devnet | undefined
let worker: Worker | undefined
const stop = async () => {
  await worker?.stop()
  await devnet?.stop()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop().then(() => process.exit(130)))
try {
  const port = await freePort()
  devnet = await startDevnet({
    chainId: Number(process.env.CHAIN_ID || 31337),
    baseUrl: `http://127.0.0.1:${port}`,
    ...(keep && { deploymentFile: DEPLOYMENT_FILE }),
  })
  say(`chain    ${devnet.rpcUrl} (chain id ${devnet.chainId}), contracts deployed, vaults funded`)
  worker = await startWorker({ port, vars: workerVars(devnet.deployment) })
  say(`service  ${worker.url}, ready after ${((Date.now() - started) / 1000).toFixed(1)} s`)
  await trade(devnet, serviceAt(worker.url))
  say(`\nDone in ${((Date.now() - started) / 1000).toFixed(1)} s: every step as expected.`)
  if (keep) {
    say(`\nStill running; Ctrl-C stops it. Try:
  curl -s ${worker.url}/vaults
  curl -s ${worker.url}/agents/1/risk-state
  npm run devnet:price -- NVDA 200
Addresses and keys: .devnet/deployment.json`)
    await Promise.race([devnet.exited, worker.exited])
  }
} catch (error) {
  console.error(error instanceof Error ? error.stack : error)
  process.exitCode = 1
} finally {
  await stop()
}
