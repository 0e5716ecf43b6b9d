import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Address, parseUnits } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { controls } from '../../devnet/controls.ts'
import { parseTape } from '../../rehearsal/tape.ts'
import { createAtsInProcess } from '../support/ats-in-process.ts'
import type { Body } from '../support/body.ts'
import { listToken } from '../support/list-token.ts'
import { clientOf, deployment, LADDER, newAgent, pins, serviceUrl } from './support.ts'

// Symbols as they are, with a dot and of one letter, in the client, `ats`, streams, webhooks and tapes.

const SYMBOLS = ['BRK.B', 'F'] as const
const PRICES = { 'BRK.B': '512.3', F: '13.4' }
const chain = controls(deployment)
const tokens: Record<string, Address> = {}
const key = generatePrivateKey()
const account = privateKeyToAccount(key)
const ats = createAtsInProcess({ ATS_URL: serviceUrl, ATS_KEY: 'trader', ATS_RPC: deployment.rpcUrl })
let agentId: string

beforeAll(async () => {
  for (const symbol of SYMBOLS)
    tokens[symbol] = await listToken(deployment, {
      symbol,
      name: `${symbol} • Robinhood Token`,
      price: PRICES[symbol],
      vault: deployment.vaults.genesis as Address,
    })
  agentId = await newAgent(account)
  await ats.importKey('trader', key)
})
afterAll(() => ats.remove())

it.each(SYMBOLS)('the symbol %s works in the client, its streams and its webhooks', async symbol => {
  const client = clientOf(account, { pins: { ...pins, tokens: { ...pins.tokens, ...tokens } } })
  const agent = client.agent(agentId)
  const received: Body[] = []
  let notify = () => {}
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    received.push(JSON.parse(text))
    response.writeHead(204).end()
    notify()
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`
    const { webhook } = await agent.webhooks.create({ url, eventTypes: ['trade'] })
    const streamed = client.events({ symbols: [symbol] })[Symbol.asyncIterator]()
    const first = streamed.next()
    const { positionId } = await agent.open({ symbol, usdcAmount: '20', exits: LADDER })
    await chain.send(deployment.accounts.oracleUpdater, {
      address: deployment.contracts.PriceOracle as Address,
      abi: priceOracleAbi,
      functionName: 'setPrices',
      args: [[tokens[symbol] as Address], [parseUnits(PRICES[symbol], 8) + 1n]],
    })
    expect(await first).toMatchObject({ done: false })
    await streamed.return?.(undefined)
    // Its first notice may be of the trade before.
    const hasSymbol = () => JSON.stringify(received).includes(`"symbol":"${symbol}"`)
    while (!hasSymbol()) await new Promise<void>(resolve => (notify = resolve))
    await agent.webhooks.delete(webhook.webhookId)
    await agent.reduce({ positionId, exitBps: 10_000 })
  } finally {
    await new Promise(resolve => server.close(resolve))
  }
})

it.each(SYMBOLS)('the symbol %s works in every command of ats that takes one', async symbol => {
  const withAgent = (...args: string[]) => ats.json(...args, '--agent', agentId)
  writeFileSync(join(ats.home, 'limits.json'), JSON.stringify({ symbols: [symbol] }), { mode: 0o600 })
  const opened = await withAgent('open', symbol, '20', '--exits', '-800:10000')
  expect(opened).toMatchObject({ positionId: expect.any(String) })
  expect(await withAgent('positions')).toMatchObject({ positions: [{ symbol }] })
  expect(JSON.stringify(await withAgent('what-if', `${symbol}=10`))).toContain(symbol)
  expect(JSON.stringify(await withAgent('trade-history', '--symbol', symbol))).toContain(symbol)
  expect(await ats.json('candles', symbol, '1h')).toMatchObject({ symbol })
  expect(await ats.json('depth', symbol, '100')).toMatchObject({ symbol })
  expect(Object.keys((await ats.json('prices', '--symbols', symbol)).prices)).toEqual([symbol])
  expect(await withAgent('quote', 'add', opened.positionId, '10')).toMatchObject({ allowed: true })
  expect(await withAgent('close', symbol)).toMatchObject({ transactionHash: expect.any(String) })
})

it('a tape takes symbols as they are', () => {
  const rows = Array.from({ length: 10 }, (_, step) =>
    ['BRK.B', 'F', 'NVDAx'].map(symbol => `${1772000000 + step * 60},${symbol},10`),
  )
  const text = ['time,symbol,price', ...rows.flat()].join('\n')
  expect(parseTape([{ name: 'tape.csv', text }]).symbols).toEqual(['BRK.B', 'F', 'NVDAx'])
})
