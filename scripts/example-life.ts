import { type Address, hexToBigInt, type TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import type { Account } from '../devnet/accounts.ts'
import type { Devnet } from '../devnet/index.ts'
import { createPayer } from '../packages/client/src/pay.ts'
import { type Json, pollUntil } from './demo-service.ts'

/** Sends a request that is recorded, and returns the JSON of its response. */
export type Send = (
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  input?: Json,
  headers?: Record<string, string>,
) => Promise<{ status: number; body: Json }>

/** What later requests need to name: an agent, its positions, and what it sent. */
export type Life = {
  agentId: string
  owner: Address
  /** The beginning of a word of its name. */
  name: string
  positionId: string
  txHash: string
  digest: string
  orderId: string
  id: string
  symbol: string
}

const sign = ({ privateKey }: Account, { types: { EIP712Domain: _, ...types }, ...rest }: Json) =>
  privateKeyToAccount(privateKey).signTypedData({ ...rest, types } as TypedDataDefinition)

/**
 * Leads the life of one agent with recorded requests, so that every operation has responded with something to show: the
 * registration and its fee, intents, a stop-loss that fires, the owner's messages.
 */
export async function liveExampleLife(devnet: Devnet, serviceUrl: string, send: Send): Promise<Life> {
  const { accounts, contracts, vaults } = devnet.deployment
  const [agent, buyer] = accounts.agents as [Account, Account]
  const succeed: Send = async (...request) => {
    const { status, body } = await send(...request)
    if (status >= 300) throw new Error(`${request[0]} ${request[1]} returned ${status}: ${JSON.stringify(body)}`)
    return { status, body }
  }

  const query = new URLSearchParams({
    signer: agent.address,
    vault: `${vaults.genesis}`,
    name: 'momentum-7',
    metadataURI: 'https://agents.example/momentum-7.json',
  })
  const { body: terms } = await succeed('GET', `/agents/register/quote?${query}`)
  const registration = { ...terms.body, signature: await sign(agent, terms.typedData) }
  const { body: unpaid } = await send('POST', '/agents/register', registration)
  const payer = createPayer({
    account: privateKeyToAccount(accounts.payer.privateKey),
    chainId: devnet.chainId,
    asset: contracts.USDC,
    maxAmount: BigInt(terms.registrationFee.amount),
  })
  const payment = await payer.pay(unpaid)
  await succeed('POST', '/facilitator/verify', {
    x402Version: 2,
    paymentPayload: JSON.parse(atob(`${payment['PAYMENT-SIGNATURE']}`)),
    paymentRequirements: unpaid.accepts[0],
  })
  const { body: registered } = await succeed('POST', '/agents/register', registration, payment)
  const { agentId } = registered
  await succeed('POST', '/agents/register', registration) // a repetition
  const agentPath = `/agents/${agentId}`

  /** Quotes a signed message, signs and sends it, twice if the operation has a status for repetitions. */
  const signAndSend = async (
    signer: Account,
    quotePath: string,
    path: string,
    input: Record<string, string>,
    method: 'POST' | 'PUT' = 'POST',
  ) => {
    const { body: quote } = await succeed('GET', `${agentPath}/${quotePath}?${new URLSearchParams(input)}`)
    const signed = { ...quote.body, signature: await sign(signer, quote.typedData) }
    const { body } = await succeed(method, `${agentPath}/${path}`, signed)
    if (method === 'POST') await succeed(method, `${agentPath}/${path}`, signed)
    await send(method, `${agentPath}/${path}`, { ...signed, deadline: `${Number(signed.deadline) + 60}` }) // not as signed
    return { quote, signed, body }
  }
  const intent = (kind: string, input: Record<string, string>) =>
    signAndSend(agent, `${kind}-intents/quote`, `${kind}-intents`, input)

  const opened = await intent('trade', { symbol: 'NVDA', usdcAmount: '250', exits: '-800:10000,2000:10000' })
  const { positionId } = opened.body
  await intent('add', { positionId, usdcAmount: '100' })
  await intent('exit-ladder', { positionId, exits: '-500:10000,1000:5000,2500:10000' })
  await intent('reduce', { positionId, exitBps: '5000' })
  await succeed('GET', `${agentPath}/positions/${positionId}`)
  const verified = {
    primaryType: 'OpenPosition',
    agentId,
    intent: opened.quote.body,
    signature: opened.signed.signature,
  }
  await succeed('POST', '/signing/verify', verified)
  await succeed('GET', `/intents/${opened.quote.digest}`)
  await succeed('GET', `/transactions/${opened.body.transactionHash}`)

  await succeed('POST', `${agentPath}/what-if`, {
    prices: { NVDA: '170' },
    intents: [{ kind: 'reduce', positionId: opened.body.positionId, exitBps: 2500 }],
  })

  const other = await intent('trade', { symbol: 'AAPL', usdcAmount: '150', exits: '-500:10000' })
  const aapl = `${agentPath}/positions/${other.body.positionId}`
  const read = async (path: string): Promise<Json> => (await fetch(serviceUrl + path)).json()
  const { position } = await read(aapl)
  await devnet.setPrice('AAPL', ((Number(position.entryPriceUsdc) / 1e6) * 0.94).toFixed(2))
  await pollUntil(
    () => read(`${aapl}/automation`),
    ({ lastOutcome }) => lastOutcome?.outcome === 'executed',
  )
  await succeed('GET', `${aapl}/automation`)
  await intent('reduce', { positionId, exitBps: '10000' })
  await intent('trade', { symbol: 'MSFT', usdcAmount: '200', exits: '-800:10000,1500:10000' })

  const entry = { type: 'limit', symbol: 'NVDA', usdcAmount: '250', price: '150', stopLossPercent: '8' }
  const { orderId } = (await signAndSend(agent, 'orders/quote', 'orders', entry)).body
  await succeed('GET', `${agentPath}/orders`)
  await succeed('GET', `${agentPath}/orders/${orderId}`)
  await signAndSend(agent, 'orders/quote', `orders/${orderId}/cancel`, { type: 'cancel', orderId })

  const receipt = await devnet.send(agent, {
    address: contracts.ERC8004IdentityRegistry,
    abi: erc8004IdentityRegistryAbi,
    functionName: 'register',
    args: [],
  })
  const transfer = receipt.logs.find(({ topics }) => topics.length === 4)
  const erc8004AgentId = `${hexToBigInt(transfer?.topics[3] ?? '0x0')}`
  await signAndSend(agent, 'erc8004/link/quote', 'erc8004/link', { erc8004AgentId })
  await succeed('GET', `/agents/by-erc8004/${erc8004AgentId}`)
  const { body: again } = await succeed('GET', `${agentPath}/erc8004/link/quote?erc8004AgentId=${erc8004AgentId}`)
  const linkedTwice = { ...again.body, signature: await sign(agent, again.typedData) }
  await send('POST', `${agentPath}/erc8004/link`, linkedTwice)

  const webhook = { url: 'https://agents.example/events', eventTypes: 'trade,exit,risk' }
  const { webhookId } = (await signAndSend(agent, 'webhooks/quote', 'webhooks', webhook)).body.webhook
  await signAndSend(agent, 'webhooks/list/quote', 'webhooks/list', {})
  await signAndSend(agent, `webhooks/${webhookId}/quote`, `webhooks/${webhookId}`, { action: 'rotateSecret' })

  const mandate = { mode: 'trade', maxTradeUsdc: '500', maxDailyTurnoverUsdc: '2000', allowedTokens: 'NVDA,AAPL,MSFT' }
  await signAndSend(agent, 'mandate/quote', 'mandate', mandate, 'PUT')
  await succeed('GET', `${agentPath}/mandate`)
  const { intentNonce } = await read(`${agentPath}/mandate`)
  await signAndSend(agent, 'cancel/quote', 'cancel', { untilNonce: `${Number(intentNonce) + 1}` })
  const newSigner = accounts.agents[2]?.address ?? buyer.address
  await signAndSend(agent, 'first-loss/quote', 'first-loss', { shares: '0' })
  await signAndSend(agent, 'signer/quote', 'signer', { newSigner })
  await pollUntil(
    () => read(`${agentPath}/equity-history`),
    ({ points }) => points.length > 0,
  )
  await succeed('GET', `${agentPath}/equity-history`)
  await succeed('GET', `${agentPath}/positions`)
  await succeed('GET', `${agentPath}/risk-state`)
  await signAndSend(agent, 'stop/quote', 'stop', { action: 'reduceOnly' })
  await signAndSend(agent, 'owner/quote', 'owner', { newOwner: buyer.address })
  await signAndSend(buyer, 'owner/acceptance/quote', 'owner/acceptance', { newSigner })
  const { digest } = opened.quote
  return {
    agentId,
    owner: buyer.address,
    name: 'momen',
    positionId,
    txHash: opened.body.transactionHash,
    digest,
    orderId,
    id: 'genesis',
    symbol: 'NVDA',
  }
}
