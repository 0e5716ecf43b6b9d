import { createPublicClient, type Hex, http, type Log, parseEventLogs } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import type { Body } from './body.ts'
import { deployment } from './surfaces.ts'

// The history of an agent as the chain has it, read in the simplest way: all logs from the first block, one call per
// fact.

const { contracts, tokens } = deployment
export const node = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl, { batch: true })) })
const manager = { address: contracts.PositionManager, abi: positionManagerAbi } as const
const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const

/** The type and source of a trade by the router's event. */
const tradesByEvent: Record<string, [type: string, source: string]> = {
  PositionOpenedFromIntent: ['PositionOpened', 'intent'],
  PositionIncreasedFromIntent: ['PositionIncreased', 'intent'],
  PositionReducedFromIntent: ['PositionReduced', 'intent'],
  PositionExitLadderUpdatedFromIntent: ['ExitLadderUpdated', 'intent'],
  ExitExecuted: ['ExitExecuted', 'automation'],
  ExitPartlyExecuted: ['ExitPartlyExecuted', 'automation'],
  PositionForceClosed: ['PositionForceClosed', 'operator'],
  PositionPartlyForceClosed: ['PositionPartlyForceClosed', 'operator'],
  OwnerCloseExecuted: ['OwnerCloseExecuted', 'owner'],
}
const NO_FACTS = {
  usdcAmount: null,
  tokenAmount: null,
  priceUsdc: null,
  realizedPnlUsdc: null,
  positionPnlUsdc: null,
  note: null,
  exitBps: null,
  ruleIndex: null,
  triggerType: null,
  triggerBps: null,
}

type TradingEvent = Log<bigint, number, false> & { eventName: string; args: Body }

async function eventsOf(agentId: string): Promise<TradingEvent[]> {
  const routers = await node.getContractEvents({ ...manager, eventName: 'TradeRouterUpdated', fromBlock: 0n })
  const address = [...routers.flatMap(({ args }) => args.current ?? []), contracts.PositionManager]
  const logs = await node.getLogs({ address, fromBlock: 0n })
  const events = parseEventLogs({ abi: [...tradeRouterAbi, ...positionManagerAbi], logs }) as unknown as TradingEvent[]
  return events.filter(({ args }) => `${args.agentId}` === agentId)
}

/** Reads all trades of an agent as the API shows them, newest first. */
export async function tradesOf(agentId: string): Promise<Body[]> {
  const events = await eventsOf(agentId)
  const records = events.map(async (event, eventIndex) => {
    const { eventName, args, transactionHash, blockNumber, logIndex } = event
    const isSameChange = (other: TradingEvent) =>
      other.transactionHash === transactionHash && other.args.positionId === args.positionId
    // The position manager emits its event before the router does.
    const before = events.slice(0, eventIndex).filter(isSameChange)
    const ownSales = before.filter(({ eventName }) => eventName in tradesByEvent)
    const closed = before.slice(before.indexOf(ownSales.at(-1) as never) + 1).find(isClosing)
    const trade = tradesByEvent[eventName]
    if (trade === undefined) return []
    const [type, source] = trade
    const read = { ...manager, args: [args.positionId] } as const
    const position = await node.readContract({ ...read, functionName: 'getPosition' })
    const capitalMode = await node.readContract({ ...read, functionName: 'capitalModeOf' })
    const [symbol, token] = Object.entries(tokens).find(([, token]) => token === position.token) ?? []
    const block = await node.getBlock({ blockNumber })
    const change = before.findLast(({ eventName }) =>
      /^Position(Opened|Reduced|LadderExit(Partly)?Applied)$/.test(eventName),
    )
    return [
      {
        ...NO_FACTS,
        id: `${transactionHash}-${logIndex}`,
        type,
        source,
        positionId: `${args.positionId}`,
        symbol,
        token,
        vault: position.vault,
        capitalMode: capitalMode === 0 ? 'Simulated' : 'Real',
        transactionHash,
        blockNumber: `${blockNumber}`,
        logIndex,
        timestamp: `${block.timestamp}`,
        ...(await factsOf(event, change)),
        ...(closed && { positionPnlUsdc: `${closed.args.realizedPnlUsdc}` }),
      },
    ]
  })
  return (await Promise.all(records)).flat().reverse()
}

const isClosing = ({ eventName }: TradingEvent) => eventName === 'PositionClosed'

const price = (usdc: bigint, amount: bigint) => `${(usdc * 10n ** 18n) / amount}`

/** Returns the facts of a trade. All tokens of the embedded chain have 18 decimals. */
async function factsOf({ eventName, args }: TradingEvent, change: TradingEvent | undefined): Promise<Body> {
  const bought = (usdc: bigint, amount: bigint) => ({ usdcAmount: `${usdc}`, tokenAmount: `${amount}` })
  const sold = () => {
    const { tokenSold = 1n, usdcReleased = 0n } = change?.args ?? {}
    const usdc = args.usdcOut
    return { ...bought(usdc, tokenSold), priceUsdc: price(usdc, tokenSold), realizedPnlUsdc: `${usdc - usdcReleased}` }
  }
  switch (eventName) {
    case 'PositionOpenedFromIntent':
      return {
        ...bought(args.usdcIn, change?.args.tokenAmount),
        priceUsdc: `${change?.args.entryPriceUsdc}`,
      }
    case 'PositionIncreasedFromIntent': {
      const [usdc, amount] = [args.usdcIn, args.tokensAdded]
      return { ...bought(usdc, amount), priceUsdc: price(usdc, amount) }
    }
    case 'PositionReducedFromIntent':
      return { ...sold(), exitBps: args.exitBps }
    case 'PositionForceClosed':
      return { ...sold(), exitBps: 10_000 }
    case 'PositionPartlyForceClosed':
    case 'OwnerCloseExecuted':
      return sold()
    case 'ExitPartlyExecuted':
      return { ...sold(), ruleIndex: args.ruleIndex }
    case 'ExitExecuted': {
      const rules = await node.readContract({
        ...manager,
        functionName: 'getExitRules',
        args: [args.positionId],
      })
      const { triggerType, triggerBps, exitBps } = rules[args.ruleIndex] ?? {}
      const rule = {
        triggerType: triggerType === 0 ? 'StopLoss' : 'TakeProfit',
        triggerBps: Number(triggerBps),
        exitBps,
      }
      return { ...sold(), ruleIndex: args.ruleIndex, ...rule }
    }
    default:
      return {}
  }
}

/** Reads an agent's closed positions, with their return on everything that was paid, newest first. */
export async function closedOf(agentId: string): Promise<Body[]> {
  const trades = await tradesOf(agentId)
  const count = await node.readContract({ ...manager, functionName: 'positionCount' })
  const ids = Array.from({ length: Number(count) }, (_, index) => BigInt(index + 1))
  const positions = await Promise.all(
    ids.map(id => node.readContract({ ...manager, functionName: 'getPosition', args: [id] })),
  )
  return positions
    .filter(position => `${position.agentId}` === agentId && position.status === 1)
    .map(({ positionId, realizedPnlUsdc }) => {
      const paid = trades
        .filter(trade => trade.positionId === `${positionId}` && /Opened|Increased/.test(trade.type))
        .reduce((sum, { usdcAmount }) => sum + BigInt(usdcAmount), 0n)
      const returnBps = Number((realizedPnlUsdc * 10_000n) / paid)
      const isSale = ({ type }: Body) => /Reduced|Exit(Partly)?Executed|ForceClosed|OwnerClose/.test(type)
      const sales = trades.filter(trade => trade.positionId === `${positionId}` && isSale(trade))
      const sum = (amount: string) => sales.reduce((total, sale) => total + BigInt(sale[amount]), 0n)
      const [last = {}] = sales
      const rule = last.triggerType === 'TakeProfit' ? 'take-profit' : 'stop-loss'
      return {
        positionId: `${positionId}`,
        realizedPnlUsdc: `${realizedPnlUsdc}`,
        returnBps,
        closedAt: last.timestamp,
        closedBy: { intent: 'signer', automation: rule }[last.source as string] ?? last.source,
        proceedsUsdc: `${sum('usdcAmount')}`,
        exitPriceUsdc: price(sum('usdcAmount'), sum('tokenAmount')),
      }
    })
    .reverse()
}

/** Reads the ids of the agents that an address owns now. */
export async function ownedBy(owner: Hex): Promise<string[]> {
  const next = await node.readContract({ ...registry, functionName: 'nextAgentId' })
  const ids = Array.from({ length: Number(next) - 1 }, (_, index) => BigInt(index + 1))
  const owners = await Promise.all(
    ids.map(id => node.readContract({ ...registry, functionName: 'ownerOf', args: [id] })),
  )
  return ids.filter((_, index) => owners[index] === owner).map(String)
}
