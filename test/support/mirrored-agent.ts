// Posts the signature of a purchase in a mirror to the mirrored deployment too (ORIGINAL), buys another token, and
// waits until the price in the mirror changes. Prints a line of JSON for each.
import { createClient } from '@agent-trading-service/client'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Body } from './body.ts'

const { BASE = '', RPC_URL = '', ATS_AGENT = '', AGENT_KEY, ORIGINAL = '' } = process.env
const account = privateKeyToAccount(AGENT_KEY as Hex)
const client = createClient({ baseUrl: BASE, account, rpcUrl: RPC_URL })
const print = (line: object) => console.error(JSON.stringify(line))
const exits = [{ triggerBps: -800, exitBps: 10_000 }]

const path = `/agents/${ATS_AGENT}/trade-intents`
const quote = await fetch(`${BASE}${path}/quote?symbol=AAPL&usdcAmount=50&exits=-800:10000`)
const { typedData, body }: Record<'typedData' | 'body', Body> = await quote.json()
const { EIP712Domain: _, ...types } = typedData.types
const signature = await account.signTypedData({ ...typedData, types })
const signed = JSON.stringify({ ...body, signature })
const posts = []
for (const base of [ORIGINAL, BASE]) {
  const response = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: signed,
  })
  const { code }: Body = await response.json()
  posts.push({ status: response.status, code })
}
const { positionId } = await client.agent(ATS_AGENT).open({ symbol: 'NVDA', usdcAmount: '90', exits })
print({ positionId, chainId: Number(typedData.domain.chainId), posts })

const priceOf = async () => (await client.getPrices({})).prices.NVDA?.priceUsd
for (const before = await priceOf(); (await priceOf()) === before; )
  await fetch(`${BASE}/rehearsal/advance`, { method: 'POST' })
print({ price: await priceOf() })
