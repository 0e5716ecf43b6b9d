import { erc20Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, inject, test } from 'vitest'
import { connect } from '../../devnet/sender.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import { chain, registrationOf } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import type { FeeChain } from '../support/facilitator.ts'
import { appWith, callOverHttp as call, deployment, type Fetch } from '../support/surfaces.ts'

// HTTP only: payments are sent in HTTP headers; mcp-clients.node.test.ts pays over MCP.
// The fee is paid on a chain with the id of Base Sepolia. The agent registers on the deployment's chain.

const payer = privateKeyToAccount(deployment.accounts.payer.privateKey)
const payee = privateKeyToAccount(generatePrivateKey()).address
const FEE = 1_000_000n

let feeChain: FeeChain
let app: Fetch
beforeAll(async () => {
  const facilitatorUrl = inject('facilitatorUrl')
  const response = await fetch(`${facilitatorUrl}/fee-network`, { method: 'POST' })
  feeChain = await response.json()
  app = appWith({
    X402_ENABLED: 'true',
    X402_NETWORK: `eip155:${feeChain.chainId}`,
    X402_ASSET: feeChain.usdc,
    X402_PAY_TO: payee,
    X402_FACILITATOR_URL: facilitatorUrl,
    X402_RPC_URL: feeChain.rpcUrl,
  })
})

const newBody = () => registrationOf(privateKeyToAccount(generatePrivateKey()))
const wallet = (fetch: Fetch) =>
  createPayer({ account: payer, chainId: feeChain.chainId, asset: feeChain.usdc, maxAmount: FEE }, fetch)
const received = () =>
  connect(feeChain.rpcUrl, feeChain.chainId).readContract({
    address: feeChain.usdc,
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [payee],
  } as const)
const carrying =
  (name: string, value: string): Fetch =>
  request => {
    const headers = new Headers(request.headers)
    headers.set(name, value)
    return app(new Request(request, { headers }))
  }

test('a fee is paid on another chain than the one the agent registers on', async () => {
  const before = await received()
  await chain.increaseTime(900) // the payment's chain has its own clock
  const body = await newBody()
  const { body: quote } = await call('getRegistrationQuote', {}, app)
  expect(quote.x402).toMatchObject({ enabled: true, network: 'eip155:84532', payTo: payee })
  expect(quote.x402.requirements.maxTimeoutSeconds).toBe(300)
  const { status, headers } = await call('registerAgent', body, wallet(app).fetch)
  expect(status).toBe(201)
  expect(JSON.parse(atob(headers.get('PAYMENT-RESPONSE') ?? ''))).toMatchObject({
    success: true,
    network: 'eip155:84532',
    payer: payer.address,
  })
  expect((await call('registerAgent', body, wallet(app).fetch)).status).toBe(200)
  expect(await received()).toBe(before + FEE)
})

test('the older x402 version names that chain in words', async () => {
  const before = await received()
  const { body: quote } = await call('getRegistrationQuote', {}, app)
  const accepts = [quote.x402.requirements]
  const [header] = Object.values(await wallet(app).pay({ x402Version: 2, resource: { url: '' }, accepts }))
  const { payload }: Body = JSON.parse(atob(header ?? ''))
  const older = btoa(JSON.stringify({ x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }))
  expect((await call('registerAgent', await newBody(), carrying('X-PAYMENT', older))).status).toBe(201)
  expect(await received()).toBe(before + FEE)
})

test('a settlement whose response was lost is found on that chain', async () => {
  const before = await received()
  const control = (behaviour: object) =>
    fetch(`${inject('facilitatorUrl')}/control`, { method: 'POST', body: JSON.stringify(behaviour) })
  await control({ settle: 'lose' })
  try {
    expect((await call('registerAgent', await newBody(), wallet(app).fetch)).status).toBe(201)
  } finally {
    await control({})
  }
  expect(await received()).toBe(before + FEE)
})
