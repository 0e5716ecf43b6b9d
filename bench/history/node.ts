import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeAbiParameters, type Hex, numberToHex, toEventSelector } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { hashOf, placeOf } from './events.ts'

export type FakeNode = { url: string; logs: () => number; stop(): Promise<void> }

type Call = { id: number; method: string; params: [Record<string, Hex> | Hex, ...unknown[]] }

/** How many logs one answer may have; providers have such a limit too. */
const MOST_LOGS = 20_000

/**
 * A node whose blocks have one trade each, with the two logs of it. Contracts are called on a real chain, so that the
 * follower finds vaults and tokens; the trades are of that deployment's router and tokens.
 */
export async function startFakeNode(
  { rpcUrl, contracts, tokens, vaults }: Deployment,
  blocks: number,
): Promise<FakeNode> {
  const topic = (abi: readonly unknown[], name: string) =>
    toEventSelector(
      (abi as { type: string; name?: string }[]).find(item => item.type === 'event' && item.name === name) as never,
    )
  const word = (value: bigint | number) => numberToHex(value, { size: 32 })
  const data = (values: (bigint | number)[]): Hex => `0x${values.map(value => word(value).slice(2)).join('')}`
  const listed = Object.values(tokens)
  const vault = `0x${(Object.values(vaults)[0] as Hex).slice(2).padStart(64, '0')}` as Hex
  const usdc = 250_000_000n
  const amount = 1_387_000_000_000_000_000n
  const opened = listed.map(token => ({
    router: encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [token, usdc]),
    manager: encodeAbiParameters(
      [{ type: 'address' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }],
      [token, amount, 180_250_000n, usdc],
    ),
  }))
  // What manager and router say of the four trades of a position: opened, increased, reduced, closed.
  const kinds = [
    { manager: topic(positionManagerAbi, 'PositionOpened'), router: topic(tradeRouterAbi, 'PositionOpenedFromIntent') },
    {
      manager: topic(positionManagerAbi, 'PositionIncreased'),
      router: topic(tradeRouterAbi, 'PositionIncreasedFromIntent'),
    },
    {
      manager: topic(positionManagerAbi, 'PositionReduced'),
      router: topic(tradeRouterAbi, 'PositionReducedFromIntent'),
    },
    {
      manager: topic(positionManagerAbi, 'PositionClosed'),
      router: topic(tradeRouterAbi, 'PositionReducedFromIntent'),
    },
  ]
  const bodies = [
    undefined,
    { manager: data([amount, usdc, 180_250_000n]), router: data([usdc, amount]) },
    { manager: data([amount, usdc]), router: data([5_000, usdc]) },
    { manager: data([1_000_000n]), router: data([10_000, usdc]) },
  ]

  function logsOf(block: number) {
    const { positionId, agentId, turn } = placeOf(block)
    const kind = kinds[turn] as (typeof kinds)[number]
    const body = bodies[turn] ?? (opened[positionId % opened.length] as (typeof opened)[number])
    const topics = [word(positionId), word(agentId), ...(turn === 0 ? [vault] : [])]
    const place = {
      ...{ blockNumber: numberToHex(block), blockHash: hashOf(block), blockTimestamp: numberToHex(block) },
      ...{ transactionHash: hashOf(block), transactionIndex: '0x0', removed: false },
    }
    return [
      {
        address: contracts.PositionManager,
        topics: [kind.manager, ...topics],
        data: body.manager,
        logIndex: '0x2',
        ...place,
      },
      {
        address: contracts.TradeRouter,
        topics: [kind.router, ...topics],
        data: body.router,
        logIndex: '0x3',
        ...place,
      },
    ]
  }

  let given = 0
  async function answer({ id, method, params }: Call): Promise<unknown> {
    if (method === 'eth_getBlockByNumber') {
      const [tag] = params as unknown as [Hex]
      const number = Number(tag.startsWith('0x') ? tag : blocks)
      const header = { number: numberToHex(number), hash: hashOf(number), timestamp: numberToHex(number) }
      return { jsonrpc: '2.0', id, result: number <= blocks ? header : null }
    }
    if (method === 'eth_getLogs') {
      const { fromBlock, toBlock } = params[0] as Record<string, Hex>
      const [from, to] = [Math.max(1, Number(fromBlock)), Number(toBlock)]
      if ((to - from + 1) * 2 > MOST_LOGS)
        return { jsonrpc: '2.0', id, error: { code: -32005, message: `query returned more than ${MOST_LOGS} results` } }
      const result = []
      for (let block = from; block <= to; block++) result.push(...logsOf(block))
      given += result.length
      return { jsonrpc: '2.0', id, result }
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params })
    return (await fetch(rpcUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).json()
  }

  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const sent = JSON.parse(Buffer.concat(chunks).toString()) as Call | Call[]
    const reply = Array.isArray(sent) ? await Promise.all(sent.map(answer)) : await answer(sent)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    logs: () => given,
    stop: () => new Promise(resolve => server.close(() => resolve())),
  }
}
