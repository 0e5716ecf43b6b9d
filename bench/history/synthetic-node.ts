import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Hex, numberToHex } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { hashOf, tradeAt } from './events.ts'

export type SyntheticNode = { url: string; stop(): Promise<void> }

type RpcCall = { id: number; method: string; params: unknown[] }

/** The maximum number of logs per response, as providers have one. */
const MAX_LOGS = 20_000
const USDC_AMOUNT = 250_000_000n
const TOKEN_AMOUNT = 1_387_000_000_000_000_000n
const PRICE_USDC = 180_250_000n

const word = (value: bigint | number) => numberToHex(value, { size: 32 })
const words = (values: (bigint | number)[]): Hex => `0x${values.map(value => word(value).slice(2)).join('')}`

/** The two events of each trade of a position, in order: opened, increased, reduced, closed. */
const TRADE_TOPICS = [
  {
    manager: eventTopic(positionManagerAbi, 'PositionOpened'),
    router: eventTopic(tradeRouterAbi, 'PositionOpenedFromIntent'),
  },
  {
    manager: eventTopic(positionManagerAbi, 'PositionIncreased'),
    router: eventTopic(tradeRouterAbi, 'PositionIncreasedFromIntent'),
  },
  {
    manager: eventTopic(positionManagerAbi, 'PositionReduced'),
    router: eventTopic(tradeRouterAbi, 'PositionReducedFromIntent'),
  },
  {
    manager: eventTopic(positionManagerAbi, 'PositionClosed'),
    router: eventTopic(tradeRouterAbi, 'PositionReducedFromIntent'),
  },
]

type EventData = { manager: Hex; router: Hex }

/** Returns the data of those events for a token. */
const eventData = (token: Hex): EventData[] => [
  {
    manager: words([BigInt(token), TOKEN_AMOUNT, PRICE_USDC, USDC_AMOUNT]),
    router: words([BigInt(token), USDC_AMOUNT]),
  },
  { manager: words([TOKEN_AMOUNT, USDC_AMOUNT, PRICE_USDC]), router: words([USDC_AMOUNT, TOKEN_AMOUNT]) },
  { manager: words([TOKEN_AMOUNT, USDC_AMOUNT]), router: words([5_000, USDC_AMOUNT]) },
  { manager: words([1_000_000n]), router: words([10_000, USDC_AMOUNT]) },
]

/**
 * Starts a node whose blocks have one trade each. Other requests are forwarded to the deployment's chain, so the follower
 * finds its vaults and tokens.
 */
export async function startSyntheticNode(
  { rpcUrl, contracts, tokens, vaults }: Deployment,
  blocks: number,
): Promise<SyntheticNode> {
  const dataByToken = Object.values(tokens).map(token => eventData(token as Hex))
  const vault: Hex = `0x${(Object.values(vaults)[0] as Hex).slice(2).padStart(64, '0')}`

  function logsOf(block: number) {
    const { positionId, agentId, tradeIndex } = tradeAt(block)
    const topics = TRADE_TOPICS[tradeIndex] as (typeof TRADE_TOPICS)[number]
    const data = dataByToken[positionId % dataByToken.length]?.[tradeIndex] as EventData
    const indexed = [word(positionId), word(agentId), ...(tradeIndex === 0 ? [vault] : [])]
    const position = {
      blockNumber: numberToHex(block),
      blockHash: hashOf(block),
      blockTimestamp: numberToHex(block),
      transactionHash: hashOf(block),
      transactionIndex: '0x0',
      removed: false,
    }
    return [
      {
        address: contracts.PositionManager,
        topics: [topics.manager, ...indexed],
        data: data.manager,
        logIndex: '0x2',
        ...position,
      },
      {
        address: contracts.TradeRouter,
        topics: [topics.router, ...indexed],
        data: data.router,
        logIndex: '0x3',
        ...position,
      },
    ]
  }

  function headerOf(tag: string) {
    const number = Number(tag.startsWith('0x') ? tag : blocks)
    return number <= blocks
      ? { number: numberToHex(number), hash: hashOf(number), timestamp: numberToHex(number) }
      : null
  }

  async function respond({ id, method, params }: RpcCall): Promise<unknown> {
    if (method === 'eth_getBlockByNumber') return { jsonrpc: '2.0', id, result: headerOf(params[0] as string) }
    if (method === 'eth_getLogs') {
      const { fromBlock, toBlock } = params[0] as { fromBlock: Hex; toBlock: Hex }
      const [from, to] = [Math.max(1, Number(fromBlock)), Number(toBlock)]
      if ((to - from + 1) * 2 > MAX_LOGS)
        return { jsonrpc: '2.0', id, error: { code: -32005, message: `query returned more than ${MAX_LOGS} results` } }
      const result = []
      for (let block = from; block <= to; block++) result.push(...logsOf(block))
      return { jsonrpc: '2.0', id, result }
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    return (await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json()
  }

  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const sent = JSON.parse(Buffer.concat(chunks).toString()) as RpcCall | RpcCall[]
    const reply = Array.isArray(sent) ? await Promise.all(sent.map(respond)) : await respond(sent)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => new Promise(resolve => server.close(() => resolve())),
  }
}
