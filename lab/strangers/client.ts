import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, getAbiItem, type Hex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Workerd } from '../../bench/workerd.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import type { Devnet } from '../../devnet/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'

// biome-ignore lint/suspicious/noExplicitAny: API responses, from which each class of request reads the fields it needs
export type Json = any
export type Agent = { agentId: string; account: PrivateKeyAccount }
/** A response with its JSON, if it has any. */
type Reply = { status: number; body: Json; headers: Headers }

export type Stranger = ReturnType<typeof createStranger>

type StrangerOptions = { devnet: Devnet; worker: Workerd; network: number }

const REQUESTS_PER_ADDRESS = 10
const POLL_MS = 250

/**
 * What a stranger can do. Requests do not throw: refusals are what it looks for. It changes its address within
 * 198.18.0.0/15 before a limit of the address stops it, because the limits are multiplied in afterwards.
 */
export function createStranger({ devnet, worker, network }: StrangerOptions) {
  let requests = 0
  const nextAddress = () => `198.18.${network}.${Math.floor(requests++ / REQUESTS_PER_ADDRESS) % 256}`
  const { accounts, contracts, vaults } = devnet.deployment
  const payer = createPayer(
    {
      account: privateKeyToAccount(accounts.payer.privateKey),
      chainId: devnet.chainId,
      asset: contracts.USDC as `0x${string}`,
      maxAmount: 1_000_000_000n,
    },
    request => fetch(request),
  )

  async function send(
    path: string,
    body?: Json,
    { pays = false, method = body === undefined ? 'GET' : 'POST', headers = {} }: SendOptions = {},
  ): Promise<Reply> {
    const request = new Request(`${worker.url}${path}`, {
      method,
      headers: { 'cf-connecting-ip': nextAddress(), 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const response = await (pays ? payer.fetch(request) : fetch(request))
    const text = await response.text()
    const [, event = text] = /^data: (\{.*)$/m.exec(text) ?? []
    return { status: response.status, body: parsed(event), headers: response.headers }
  }

  async function expectOk(path: string, body?: Json, options?: SendOptions): Promise<Json> {
    const reply = await send(path, body, options)
    if (reply.status >= 300) throw new Error(`${path} returned ${reply.status}: ${JSON.stringify(reply.body)}`)
    return reply.body
  }

  const sign = (account: PrivateKeyAccount, { types: { EIP712Domain: _, ...types }, ...rest }: Json) =>
    account.signTypedData({ ...rest, types })

  /** Quotes and signs; returns the body to post. */
  async function signed(account: PrivateKeyAccount, quotePath: string): Promise<Json> {
    const { body, typedData } = await expectOk(quotePath)
    return { ...body, signature: await sign(account, typedData) }
  }

  const registration = (account: PrivateKeyAccount) =>
    signed(
      account,
      `/agents/register/quote?${new URLSearchParams({
        signer: account.address,
        vault: vaults.genesis as string,
        name: 'stranger',
        metadataURI: 'https://agents.example/stranger.json',
      })}`,
    )

  return {
    send,
    expectOk,
    signed,
    registration,
    newAccount: () => privateKeyToAccount(generatePrivateKey()),
    async register(): Promise<Agent> {
      const account = privateKeyToAccount(generatePrivateKey())
      const { agentId } = await expectOk('/agents/register', await registration(account), { pays: true })
      return { agentId, account }
    },
    /** Waits until an order of one part has executed; returns the transaction. */
    async execution(orderId: Hex): Promise<Hex> {
      const event = getAbiItem({ abi: orderBookAbi, name: 'OrderExecuted' })
      const filter = { address: contracts.OrderBook as Address, event, args: { orderId }, fromBlock: 0n }
      for (;;) {
        const [executed] = await devnet.client.getLogs(filter)
        if (executed) return executed.transactionHash
        await sleep(POLL_MS)
      }
    },
    /** Opens a stream and returns what closes it. */
    async open(path: string, headers: Record<string, string> = {}): Promise<() => void> {
      const abort = new AbortController()
      const response = await fetch(`${worker.url}${path}`, {
        headers: { 'cf-connecting-ip': nextAddress(), ...headers },
        signal: abort.signal,
      })
      if (!response.ok) throw new Error(`${path} returned ${response.status}`)
      return () => abort.abort()
    },
  }
}

type SendOptions = { pays?: boolean; method?: 'GET' | 'POST' | 'PUT' | 'DELETE'; headers?: Record<string, string> }

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
