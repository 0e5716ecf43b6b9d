import { PositionStatus } from '@agent-trading-service/protocol/enums'
import { closingSinceOf } from '@agent-trading-service/protocol/mandate'
import { type RoundData, strictestMaxAge, toPriceQuote } from '@agent-trading-service/protocol/oracle-price'
import type { ExitMarket, WatchedPosition } from '@agent-trading-service/protocol/position'
import { type ListingSession, PLAIN_TOKEN } from '@agent-trading-service/protocol/token-description'
import { type TokenRestriction, toTokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import type { Address } from 'viem'
import { nowAt } from '../clock.ts'
import { sourceOf } from './carried-prices.ts'
import type { Block, TradingChain } from './configured-chain.ts'
import { agentRegistry, mandateVault, positionManager, priceOracle, tokenRegistry, tradeRouter } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'
import { descriptionCall, descriptionFrom, multiplierCalls, multiplierIn } from './token-facts.ts'
import { restrictionCalls } from './token-restrictions.ts'

/** The token and the vault of positions: together they decide how old a price may be. */
export type Market = { token: Address; vault: Address }

/** Positions with all that decides about their exits, as of a block. */
export type WatchedPositions = {
  block: Block
  /** The highest position id up to which every position after the given cursor was read; lower after a reorg. */
  cursor: bigint
  /** The positions that exist, open or closed. */
  positions: WatchedPosition[]
  marketOf: (market: Market) => ExitMarket
  /** Whether the router supports executeExits. */
  takesBatches: boolean
  /** Undefined in a deployment without one. */
  orderBook: Address | undefined
}

/** Number of ids after the cursor to read with the first page, whether or not they exist. */
const SPARE_POSITIONS = 2n
/** Positions, and agents, per `eth_call`: far below the gas that nodes allow for a call. */
const POSITIONS_PER_CALL = 300
const AGENTS_PER_CALL = 300
/** How many positions after the cursor are read at once. A new keeper needs several cycles. */
const MAX_NEW_POSITIONS = 3_000n

type TokenMarket = {
  round: RoundData | undefined
  maxAge: bigint
  decimals: number
  calendar: ListingSession
  effectiveAt: bigint
}
type VaultMarket = { tradingPaused: boolean; maxPriceAge: bigint }

const keyOf = ({ token, vault }: Market) => `${token} ${vault}`

/**
 * Reads the positions with the given ids, and up to 3,000 with higher ids than `cursor` if it is given. It makes one
 * `eth_call` per 300 positions, whose agents and markets may be given, and one more for the missing ones. All of them
 * read the newest block, because nodes may not have the state of any other; so values of later pages may be of a later
 * block than the returned one. Throws CHAIN_UNREACHABLE.
 */
export async function readWatchedPositions(
  chain: TradingChain,
  {
    positionIds,
    cursor,
    markets,
    tokens: otherTokens = [],
    agentIds: knownAgentIds,
  }: {
    positionIds: readonly bigint[]
    cursor?: bigint
    /** Markets to read although none of the positions may be in them. */
    markets: readonly Market[]
    /** More tokens to read the prices of. */
    tokens?: readonly Address[]
    agentIds: Iterable<bigint>
  },
): Promise<WatchedPositions> {
  const tokens = new Set([...markets.map(({ token }) => token), ...otherTokens])
  const vaults = new Set(markets.map(({ vault }) => vault))
  const agentIds = new Set(knownAgentIds)
  const closingSinceByAgent = new Map<bigint, bigint>()
  const tokenMarkets = new Map<Address, TokenMarket>()
  const vaultMarkets = new Map<Address, VaultMarket>()
  const heldMarkets = new Map(markets.map(({ token, vault }) => [keyOf({ token, vault }), { token, vault }]))
  const restrictions = new Map<string, TokenRestriction | undefined>()
  const records: Omit<WatchedPosition, 'closingSince'>[] = []
  const decimalsOf = chain.memory.decimals

  /** Reads a page of positions, with the tokens, vaults and agents that were not read yet. */
  async function readPage(ids: readonly bigint[]) {
    const { block, values } = await readTree(chain, {
      positionCount: optional(call(positionManager(chain), 'positionCount', [])),
      emptyBatch: optional(call(tradeRouter(chain), 'executeExits', [[]])),
      orderBook: optional(call(agentRegistry(chain), 'orderBook', [])),
      tokens: [...tokens].filter(token => !tokenMarkets.has(token)).map(token => tokenCalls(chain, token)),
      vaults: [...vaults].filter(vault => !vaultMarkets.has(vault)).map(vaultCalls),
      held: [...heldMarkets.values()]
        .filter(market => !restrictions.has(keyOf(market)))
        .map(market => ({ market, ...restrictionCalls(chain, market) })),
      agents: [...agentIds]
        .filter(agentId => !closingSinceByAgent.has(agentId))
        .slice(0, AGENTS_PER_CALL)
        .map(agentId => ({
          agentId,
          mandateState: optional(call(agentRegistry(chain), 'mandateStateOf', [agentId])),
        })),
      positions: ids.map(id => ({
        record: optional(call(positionManager(chain), 'getPosition', [id])),
        exitRules: optional(call(positionManager(chain), 'getExitRules', [id])),
        dueExit: optional(call(positionManager(chain), 'dueExitOf', [id])),
      })),
    })
    for (const { address, round, maxAge = 0n, decimals, description, multiplier } of values.tokens) {
      const { multiplier: shares, effectiveAt } = multiplierIn(multiplier)
      chain.memory.registryHasMultipliers = multiplier.registered !== undefined
      if (decimals !== undefined) decimalsOf.set(address, decimals)
      if (shares !== undefined) chain.memory.multipliers.set(address, shares)
      tokenMarkets.set(address, {
        round,
        maxAge,
        decimals: decimalsOf.get(address) ?? 18,
        calendar: descriptionFrom(description).session,
        effectiveAt,
      })
    }
    for (const { address, tradingPaused = false, maxPriceAge = 0n } of values.vaults)
      vaultMarkets.set(address, { tradingPaused, maxPriceAge })
    for (const { market, restriction, ledger } of values.held)
      restrictions.set(keyOf(market), toTokenRestriction(restriction, ledger))
    for (const { agentId, mandateState = 0n } of values.agents)
      closingSinceByAgent.set(agentId, closingSinceOf(mandateState))
    for (const { record, exitRules, dueExit } of values.positions)
      if (record && exitRules && record.openedAt > 0n) records.push({ ...record, exitRules, dueExit })
    const { positionCount = 0n, emptyBatch, orderBook } = values
    return { block, positionCount, takesBatches: emptyBatch !== undefined, orderBook }
  }

  const pending = [...positionIds, ...(cursor === undefined ? [] : idsBetween(cursor + 1n, cursor + SPARE_POSITIONS))]
  const { positionCount, ...first } = await readPage(pending.splice(0, POSITIONS_PER_CALL))
  const last =
    cursor === undefined || positionCount < cursor + MAX_NEW_POSITIONS ? positionCount : cursor + MAX_NEW_POSITIONS
  if (cursor !== undefined) pending.push(...idsBetween(cursor + SPARE_POSITIONS + 1n, last))
  while (pending.length > 0) await readPage(pending.splice(0, POSITIONS_PER_CALL))

  const open = records.filter(({ status }) => status === PositionStatus.Open)
  for (const { token, vault, agentId } of open) {
    agentIds.add(agentId)
    tokens.add(token)
    vaults.add(vault)
    heldMarkets.set(keyOf({ token, vault }), { token, vault })
  }
  const isUnread = ({ token, vault, agentId }: (typeof open)[number]) =>
    !restrictions.has(keyOf({ token, vault })) || !closingSinceByAgent.has(agentId)
  while (open.some(isUnread)) await readPage([])

  /** A node that is behind has no record of the last positions yet: they are read again. */
  function lastRead(from: bigint, to: bigint): bigint {
    const read = new Set(records.map(({ positionId }) => positionId))
    let id = from
    while (id < to && read.has(id + 1n)) id++
    return id < to ? id : to
  }

  return {
    ...first,
    cursor: cursor === undefined ? last : lastRead(cursor, last),
    positions: records.map(record => ({ ...record, closingSince: closingSinceByAgent.get(record.agentId) ?? 0n })),
    marketOf({ token, vault }) {
      const market = tokenMarkets.get(token)
      const { round, maxAge = 0n, decimals = 18, calendar = PLAIN_TOKEN.session, effectiveAt } = market ?? {}
      const { tradingPaused = false, maxPriceAge = 0n } = vaultMarkets.get(vault) ?? {}
      const at = nowAt(first.block)
      const quote = toPriceQuote(round, strictestMaxAge([maxPriceAge, maxAge]), {
        at,
        effectiveAt,
        source: sourceOf(chain, token).kind,
      })
      return { quote, calendar, decimals, tradingPaused, restriction: restrictions.get(keyOf({ token, vault })) }
    },
  }
}

const idsBetween = (from: bigint, to: bigint) =>
  Array.from({ length: Math.max(0, Number(to - from) + 1) }, (_, index) => from + BigInt(index))

/**
 * The calls that read the price of a token, how old it may be, its description, and its decimals unless they are known.
 */
const tokenCalls = (chain: TradingChain, address: Address) => ({
  address,
  round: optional(call(priceOracle(chain), 'latestRoundData', [address])),
  maxAge: optional(call(priceOracle(chain), 'maxAgeOf', [address])),
  description: descriptionCall(chain, address),
  multiplier: multiplierCalls(chain, address),
  decimals: chain.memory.decimals.has(address)
    ? undefined
    : optional(call(tokenRegistry(chain), 'tokenDecimals', [address])),
})

const vaultCalls = (address: Address) => ({
  address,
  tradingPaused: optional(call(mandateVault(address), 'tradingPaused', [])),
  maxPriceAge: optional(call(mandateVault(address), 'maxPriceAge', [])),
})
