import { isExecution } from '@agent-trading-service/protocol/agent-book'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { usdcValue } from '@agent-trading-service/protocol/oracle-price'
import { buildTrade, openedPosition, pairTradeEvents, type Trade } from '@agent-trading-service/protocol/trade-events'
import { type Hex, zeroAddress } from 'viem'
import { createSharedReads } from '../chain/combine-concurrent-reads.ts'
import type { MarketQuery, MarketRead, TradingChain } from '../chain/configured-chain.ts'
import { positionManager, priceOracle, tokenRegistry } from '../chain/contracts.ts'
import { readReceiptLogs } from '../chain/find-transaction.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { signedTradeIn } from '../chain/signed-trade.ts'
import { guessToken, noteToken } from '../chain/traded-tokens.ts'
import { withDeadline } from '../concurrency.ts'
import type { Context } from '../context.ts'
import type { ReceiptLog } from '../executor/relay-types.ts'

/** An executed intent of an agent. `trade` is what the index has of it, if it was found there. */
type ExecutedIntent = {
  agentId: bigint
  hash: Hex
  blockNumber: bigint
  /** The calldata of the router, in which the ladder is. */
  data: Hex
  logs: readonly ReceiptLog[]
  trade?: Trade | undefined
  /** Whether it was executed before, so that the index may have it. */
  isReplay: boolean
}

/** What an intent bought or sold, and the exit rules that wait after it; undefined if it did not change them. */
type TradeResult = { execution: Trade | undefined; pendingRules: readonly ExitRule[] | undefined }

/** How long a receipt waits for the oracle's price of its block. Without it, the cost is unknown. */
const MAX_MARKET_READ_MS = 1_500

/**
 * Returns what an executed intent did, the same whenever it is asked for: amounts are from the logs of its transaction,
 * the rules from its calldata, and the oracle's value is at the end of its block. Old blocks' prices are known to the
 * index alone.
 */
export async function readTradeResult(
  { trading, history }: Pick<Context, 'trading' | 'history'>,
  intent: ExecutedIntent,
): Promise<TradeResult> {
  const { agentId, hash, blockNumber, isReplay } = intent
  const pendingRules = signedTradeIn(intent.data)?.exits
  const event = intentEventOf(trading, intent) ?? (await eventOnChain(trading, intent))
  if (event !== undefined && !isExecution(event)) return { execution: undefined, pendingRules }
  const indexed =
    intent.trade ??
    (isReplay ? await history.intentTrade({ agentId, hash, blockNumber }).catch(() => undefined) : undefined)
  if (event === undefined || indexed?.oracleValueUsdc !== undefined) return { execution: indexed, pendingRules }
  trading.memory.readMarkets ??= createMarketReads(trading)
  const token = indexed?.token ?? openedPosition(event)?.token
  const market = await withDeadline(
    trading.memory.readMarkets({ positionId: event.positionId, token, blockNumber }),
    Date.now() + MAX_MARKET_READ_MS,
    () => undefined,
  )
  const { decimals, price } = market ?? {}
  const execution = buildTrade(event, {
    token: market?.token ?? zeroAddress,
    vault: zeroAddress,
    capitalMode: undefined,
    decimals,
    rule: undefined,
    timestamp: 0n,
  })
  const { tokenAmount } = execution
  const isValued = tokenAmount !== undefined && decimals !== undefined && price !== undefined
  return {
    execution: isValued ? { ...execution, oracleValueUsdc: usdcValue(tokenAmount, { price, decimals }) } : execution,
    pendingRules,
  }
}

/** Returns the event of the intent in the logs of its transaction. */
function intentEventOf({ trading }: TradingChain, { hash, blockNumber, logs }: ExecutedIntent) {
  const addresses = [trading.TradeRouter, trading.PositionManager].map(address => address.toLowerCase())
  const own = logs
    .map(({ address, topics, data }, logIndex) => ({
      ...{ address, topics, data, logIndex, blockNumber },
      transactionHash: hash,
    }))
    .filter(({ address }) => addresses.includes(address.toLowerCase()))
  return pairTradeEvents(own).find(({ source }) => source === 'intent')
}

/** Reads the receipt of an intent that was found in the index. */
async function eventOnChain(chain: TradingChain, intent: ExecutedIntent) {
  if (intent.logs.length > 0 || intent.trade?.oracleValueUsdc !== undefined) return undefined
  const logs = await readReceiptLogs(chain, intent.hash)
  return logs ? intentEventOf(chain, { ...intent, logs }) : undefined
}

/** Returns a function that reads markets at a block: those of all intents of the block with one call. */
const createMarketReads = (chain: TradingChain) =>
  createSharedReads(async (queries: readonly MarketQuery[]) => {
    const ofBlocks = Map.groupBy(queries, ({ blockNumber }) => blockNumber)
    const read = await Promise.all([...ofBlocks].map(([number, ofBlock]) => readMarkets(chain, number, ofBlock)))
    const marketOf = new Map(read.flat())
    return queries.map(query => marketOf.get(query))
  })

/**
 * Reads the tokens of positions with their decimals and the oracle's prices at a block, in one call if the tokens are
 * given or known to this isolate. Returns none if no node has the state of the block.
 */
async function readMarkets(
  chain: TradingChain,
  number: bigint,
  queries: readonly MarketQuery[],
): Promise<[MarketQuery, MarketRead | undefined][]> {
  const decimalsOf = chain.memory.decimals
  const candidates = queries.flatMap(
    ({ token, positionId }) =>
      token ?? guessToken(chain, positionId) ?? [...Object.values(chain.tokens), ...decimalsOf.keys()],
  )
  const reading = await readTree(
    chain,
    {
      positions: queries.map(({ token, positionId }) =>
        token === undefined ? optional(call(positionManager(chain), 'getPosition', [positionId])) : undefined,
      ),
      markets: [...new Set(candidates)].map(token => ({
        token,
        decimals: decimalsOf.has(token) ? undefined : optional(call(tokenRegistry(chain), 'tokenDecimals', [token])),
        round: optional(call(priceOracle(chain), 'latestRoundData', [token])),
      })),
    },
    { number, timestamp: 0n },
  ).catch(() => undefined)
  if (reading === undefined) return []
  const { positions, markets } = reading.values
  for (const { token, decimals } of markets) if (decimals !== undefined) decimalsOf.set(token, decimals)
  return Promise.all(
    queries.map(async (query, index): Promise<[MarketQuery, MarketRead | undefined]> => {
      const token = query.token ?? positions[index]?.token
      if (token === undefined) return [query, undefined]
      noteToken(chain, query.positionId, token)
      const market = markets.find(market => market.token === token)
      if (market) return [query, { token, decimals: decimalsOf.get(token), price: market.round?.[1] }]
      const [again] = await readMarkets(chain, number, [{ ...query, token }])
      return [query, again?.[1]]
    }),
  )
}
