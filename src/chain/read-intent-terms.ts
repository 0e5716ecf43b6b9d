import type { ExtensionTerms, TokenTerms, TradingTerms, Waste } from '@agent-trading-service/protocol/check'
import { dayFiguresAt } from '@agent-trading-service/protocol/day-figures'
import { AllocationStatus } from '@agent-trading-service/protocol/enums'
import {
  type PriceQuote,
  type PriceSourceKind,
  strictestMaxAge,
  toPriceQuote,
} from '@agent-trading-service/protocol/oracle-price'
import type { Position } from '@agent-trading-service/protocol/position'
import { toTokenRestriction } from '@agent-trading-service/protocol/token-restriction'
import type { TradePolicy } from '@agent-trading-service/protocol/trade-policy'
import { type Domain, domainAbi, toDomain } from '@agent-trading-service/protocol/typed-data'
import { type Address, type Hex, isAddressEqual, zeroAddress, zeroHash } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { nowAt, timeIfOld } from '../clock.ts'
import { refuse } from '../errors/refuse.ts'
import { type AgentRecord, existing, foundAgent } from './agent-record.ts'
import { type Agent, agentRecordCall, decodeAgent } from './agents.ts'
import { callReader, type ReaderValues } from './call-service-reader.ts'
import { priceNeedOf, sourceOf } from './carried-prices.ts'
import { createSharedReads } from './combine-concurrent-reads.ts'
import type { Block, SigningQuery, SigningRead, Traded, TradingChain } from './configured-chain.ts'
import { eip712Contract, positionManager, priceOracle, tradeRouter } from './contracts.ts'
import { type CallResult, decodeResult, tryDecodeResult } from './encode-and-decode-call.ts'
import { newest } from './min-blocks.ts'
import { withNewestPrices } from './newest-prices.ts'
import { decodePosition } from './positions.ts'
import { call, optional, readTree } from './read-tree.ts'
import { decodeMultiplier, multiplierAbi, multiplierCalls, multiplierIn, toTokenFacts } from './token-facts.ts'
import { symbolsOf } from './token-symbols.ts'
import { guessToken, noteToken, readWithToken } from './traded-tokens.ts'

/** What the signature of an agent's next intent must match. */
export type SigningTerms = { agent: AgentRecord; nonce: bigint; domain: Domain }

/** The token that an intent buys, with its price; undefined where it buys none or the token is not known yet. */
type Bought = { token: Address; quote: PriceQuote } | undefined

const createSigningReads = (chain: TradingChain) =>
  createSharedReads(async (queries: readonly SigningQuery[]) => {
    const minBlock = newest(...queries.map(query => query.minBlock))
    const router = eip712Contract(chain.trading.TradeRouter)
    const { block, values } = await readTree(
      { ...chain, minBlock },
      {
        domain: chain.memory.routerDomain ? undefined : call(router, 'eip712Domain', []),
        agents: queries.map(({ agentId, traded, isPurchase }) => ({
          record: agentRecordCall(chain, agentId),
          nonce: call(tradeRouter(chain), 'nonces', [agentId]),
          position:
            traded && 'positionId' in traded
              ? optional(call(positionManager(chain), 'getPosition', [traded.positionId]))
              : undefined,
          market: tokenCalls(chain, isPurchase ? traded : undefined),
        })),
      },
    )
    const domain = values.domain && toDomain(values.domain)
    return values.agents.map(
      ({ market, ...agent }): SigningRead => ({
        block,
        ...agent,
        domain,
        market: market && { ...market, effectiveAt: multiplierIn(market.multiplier).effectiveAt },
      }),
    )
  })

/** Returns what is read of the token that a purchase is of: that of a position is a guess. */
function tokenCalls(chain: TradingChain, purchase: Traded | undefined) {
  const token = purchase && ('token' in purchase ? purchase.token : guessToken(chain, purchase.positionId))
  if (token === undefined) return undefined
  return {
    token,
    round: optional(call(priceOracle(chain), 'latestRoundData', [token])),
    multiplier: multiplierCalls(chain, token),
  }
}

/**
 * Reads in one round trip what an intent's signature is verified against, the token that it trades, and the price of
 * what it buys. Throws AGENT_NOT_FOUND.
 */
export async function getSigningTerms(
  chain: TradingChain,
  agentId: bigint,
  { traded, isPurchase = false }: { traded?: Traded | undefined; isPurchase?: boolean } = {},
): Promise<{ block: Block; token: Address | undefined; bought: Bought } & SigningTerms> {
  const { trading, memory, minBlock } = chain
  memory.readSigningTerms ??= createSigningReads(chain)
  const query = { agentId, minBlock, traded, isPurchase }
  const readTerms = memory.readSigningTerms
  const { block, record, nonce, position, market, ...read } =
    isPurchase && traded && 'positionId' in traded
      ? await readWithToken(chain, traded.positionId, async () => {
          const reading = await readTerms(query)
          return { ...reading, token: reading.position?.token }
        })
      : await readTerms(query)
  const agent = foundAgent(existing(record), agentId)
  const domain = memory.routerDomain ?? read.domain
  if (domain === undefined) throw new Error('The domain was neither known nor read')
  // A node that returned another contract's domain once must not decide for all later requests.
  if (domain.chainId === BigInt(chain.id) && isAddressEqual(domain.verifyingContract, trading.TradeRouter))
    memory.routerDomain = domain
  const token = traded && 'token' in traded ? traded.token : position?.token
  const bought = market && {
    token: market.token,
    quote: toPriceQuote(market.round, 0n, { at: nowAt(block), effectiveAt: market.effectiveAt }),
  }
  return { block, agent, nonce, domain, token, bought }
}

/** What the router would sell of a position now. Amounts are base units; `dueSince` is Unix seconds. */
export type ExitState = { dueSince: bigint; tokensToSell: bigint; slippageBps: bigint; floorUsdc: bigint }

/** Everything that an intent is checked against, at one block. */
export type IntentTerms = SigningTerms &
  TradingTerms & {
    agent: Agent
    agentId: bigint
    vault: { asset: Address; allowedTokens: Address[] }
    /** Days since the epoch. */
    day: bigint
    /** Undefined without an open position, without a fresh price, or in a deployment without the extension. */
    exitState: ExitState | undefined
    /** Undefined in a deployment without an order book. */
    orders: OrderBookTerms | undefined
  }

/** The order book's domain and places. `isOpen` is that of the subject's order, false without one. */
type OrderBookTerms = { domain: Domain; openOrderCount: bigint; maxOpenOrders: bigint; isOpen: boolean }

/** The token, position or order of an intent, or none; the venue quotes the amounts. */
export type TermsSubject = {
  token?: Address | undefined
  positionId?: bigint | undefined
  usdcAmount?: bigint | undefined
  exitBps?: number | undefined
  orderId?: Hex | undefined
}

/**
 * Reads the terms of an agent's next intent at the newest prices, in one round trip: in two if the token of a position
 * turns out to need more than the oracle holds. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND, PRICE_REPORTS_UNAVAILABLE.
 */
export async function getTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: TermsSubject = {},
): Promise<{ block: Block; terms: IntentTerms }> {
  async function readAt(token: Address | undefined) {
    const priced = await withNewestPrices(chain, token === undefined ? [] : [token], {
      isExit: subject.exitBps !== undefined,
    })
    const { block, values } = await callReader(priced, 'intentTerms', termsQuery(agentId, subject))
    return { block, terms: await decodeTerms(chain, { block, results: values.terms, agentId, subject }) }
  }
  const expected = subject.token ?? guessToken(chain, subject.positionId ?? 0n)
  const read = await readAt(expected)
  const token = read.terms.token?.address
  return token === expected || token === undefined || priceNeedOf(chain, [token]) === undefined ? read : readAt(token)
}

export const termsQuery = (agentId: bigint, subject: TermsSubject) => ({
  agentId,
  token: subject.token ?? zeroAddress,
  positionId: subject.positionId ?? 0n,
  usdcAmount: subject.usdcAmount ?? 0n,
  exitBps: BigInt(subject.exitBps ?? 0),
  orderId: subject.orderId ?? zeroHash,
})

/** Returns the terms in the results of the service reader. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND. */
export async function decodeTerms(
  chain: TradingChain,
  { block, results, agentId, subject }: { block: Block; results: TermsResults; agentId: bigint; subject: TermsSubject },
): Promise<IntentTerms> {
  const agent = foundAgent(decodeAgent(results.agent), agentId)
  const position = subject.positionId === undefined ? undefined : decodePosition(results.position)
  if (subject.positionId !== undefined && position?.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId: subject.positionId })
  if (position) noteToken(chain, position.positionId, position.token)

  const token = subject.token ?? position?.token
  const allowedTokens = results.vault.allowedTokens.filter(allowed => allowed !== zeroAddress)
  const symbolOf = await symbolsOf(chain, token === undefined ? allowedTokens : [...allowedTokens, token])
  return {
    agentId,
    agent,
    nonce: decodeResult(tradeRouterAbi, 'nonces', results.nonce),
    domain: toDomain(decodeResult(domainAbi, 'eip712Domain', results.domain)),
    registryPaused: decodeResult(agentRegistryAbi, 'paused', results.registryPaused),
    allocation: decodeAllocation(results.allocation),
    trackConfig: decodeResult(vaultTrackRegistryAbi, 'getVaultTrackConfig', results.trackConfig),
    trackActive: decodeResult(vaultTrackRegistryAbi, 'isVaultTrackActive', results.trackActive),
    vault: {
      tradingPaused: decodeResult(mandateVaultAbi, 'tradingPaused', results.vault.tradingPaused),
      totalAssets: decodeResult(mandateVaultAbi, 'totalAssets', results.vault.totalAssets),
      idleAssets: decodeResult(mandateVaultAbi, 'idleAssets', results.vault.idleAssets),
      asset: decodeResult(mandateVaultAbi, 'asset', results.vault.asset),
      allowedTokens,
    },
    day: results.day,
    dailyTurnoverUsdc: decodeDays(results, block).today.turnoverUsdc,
    dailyRealizedPnlUsdc: decodeDays(results, block).today.realizedPnlUsdc,
    extension: decodeExtension(results, block),
    dueExit: tryDecodeResult(positionManagerAbi, 'dueExitOf', results.dueExit),
    exitState: tryDecodeResult(tradeRouterLensAbi, 'exitStateOf', results.position.exitState),
    orders: decodeOrders(results),
    token: token && {
      address: token,
      symbol: symbolOf(token),
      ...decodeTokenTerms(results, block, sourceOf(chain, token).kind),
    },
    position,
  }
}

function decodeOrders(results: TermsResults): OrderBookTerms | undefined {
  const domain = tryDecodeResult(domainAbi, 'eip712Domain', results.orderDomain)
  const openOrderCount = tryDecodeResult(orderBookAbi, 'openOrderCount', results.openOrderCount)
  const maxOpenOrders = tryDecodeResult(orderBookAbi, 'MAX_OPEN_ORDERS', results.maxOpenOrders)
  if (domain === undefined || openOrderCount === undefined || maxOpenOrders === undefined) return undefined
  const state = tryDecodeResult(orderBookAbi, 'orderStateOf', results.orderState)
  return { domain: toDomain(domain), openOrderCount, maxOpenOrders, isOpen: (state?.placedAt ?? 0) > 0 }
}

type TermsResults = ReaderValues<'intentTerms'>['terms']

/** Returns the time at which a transaction would execute next: that of the newest block unless it is old. */
const executionTime = (block: Block): bigint => timeIfOld(block) ?? block.timestamp

/** Decodes what of an agent's waste counts; none in a deployment that does not count it. */
export function decodeWaste(result: CallResult): Waste {
  const [usdc, maxUsdc, endsAt] = tryDecodeResult(allocationManagerAbi, 'wasteOf', result) ?? [0n, 0n, 0n]
  return { usdc, maxUsdc, endsAt }
}

/** Decodes the waste and lets it fade until a transaction would execute. */
function wasteAt(block: Block, results: TermsResults): ExtensionTerms['waste'] {
  const waste = decodeWaste(results.waste)
  const left = waste.endsAt - executionTime(block)
  if (waste.usdc === 0n || left <= 0n) return { ...waste, usdc: 0n }
  return { ...waste, usdc: (waste.usdc * left) / (waste.endsAt - block.timestamp) }
}

/** Decodes the figures of today and of the day before, as a transaction would find them. */
const decodeDays = (results: TermsResults, block: Block) =>
  dayFiguresAt(
    {
      day: results.day,
      today: {
        turnoverUsdc: decodeResult(tradeRouterAbi, 'dailyTurnoverUsdc', results.dailyTurnover),
        realizedPnlUsdc: decodeResult(tradeRouterAbi, 'dailyRealizedPnlUsdc', results.dailyRealizedPnl),
      },
      before: {
        turnoverUsdc: decodeResult(tradeRouterAbi, 'dailyTurnoverUsdc', results.previousTurnover),
        realizedPnlUsdc: decodeResult(tradeRouterAbi, 'dailyRealizedPnlUsdc', results.previousRealizedPnl),
      },
    },
    executionTime(block),
  )

/** Returns what the contracts of the extension add; undefined if the router consults no trade policy. */
function decodeExtension(results: TermsResults, block: Block): ExtensionTerms | undefined {
  const tradePolicy = decodeTradePolicy(results.policy)
  const record = tryDecodeResult(allocationManagerAbi, 'trackRecordOf', results.trackRecord)
  const capitalMode = tryDecodeResult(allocationManagerAbi, 'capitalModeOf', results.capitalMode)
  if (tradePolicy === undefined || record === undefined || capitalMode === undefined) return undefined
  return {
    capitalMode,
    effectiveCap:
      tryDecodeResult(allocationManagerAbi, 'effectiveCapUsdc', results.effectiveCap) ??
      decodeAllocation(results.allocation).cap,
    tradePolicy,
    realizedPnlUsdc: record.realizedPnl,
    peakRealizedPnlUsdc: record.peakRealizedPnl,
    waste: wasteAt(block, results),
    previousDay: decodeDays(results, block).before,
    blockTime: executionTime(block),
    now: nowAt(block),
    mandate: tryDecodeResult(ownerControlsAbi, 'mandateOf', results.mandate),
  }
}

function decodeTokenTerms(
  { token, vault, quoted, fills, sale, venuePrices, isTwapRequired, isTokenAllowed }: TermsResults,
  block: Block,
  source: PriceSourceKind,
): Omit<TokenTerms, 'address' | 'symbol'> {
  const round = tryDecodeResult(priceOracleAbi, 'latestRoundData', token.round)
  const maxAge = tryDecodeResult(priceOracleAbi, 'maxAgeOf', token.maxAge) ?? 0n
  const maxPriceAge = decodeResult(mandateVaultAbi, 'maxPriceAge', vault.maxPriceAge)
  // The intent's amount comes first and may be among the probed amounts too: in reverse order, it wins in the map.
  const at = nowAt(block)
  const ownEffectiveAt = tryDecodeResult(multiplierAbi, 'effectiveAt', token.effectiveAt)
  const { multiplier, effectiveAt } = decodeMultiplier(token.multiplier, ownEffectiveAt)
  const prices = tryDecodeResult(uniswapV3SwapAdapterAbi, 'pricesOf', venuePrices)
  const quotedFills = fills.filter(({ amountIn }) => amountIn > 0n).toReversed()
  return {
    decimals: tryDecodeResult(tokenRegistryAbi, 'tokenDecimals', token.decimals) ?? 18,
    restriction: toTokenRestriction(
      tryDecodeResult(tokenRegistryAbi, 'restrictionOf', token.restriction),
      tryDecodeResult(mandateVaultAbi, 'tokenLedger', token.ledger),
    ),
    allowed: decodeResult(mandateVaultAbi, 'isAllowedToken', token.isAllowed),
    quote: toPriceQuote(round, strictestMaxAge([maxPriceAge, maxAge]), { at, effectiveAt, source }),
    ...toTokenFacts(
      {
        description: tryDecodeResult(tokenRegistryAbi, 'descriptionOf', token.description),
        registered: [multiplier ?? 0n, effectiveAt],
        next: tryDecodeResult(multiplierAbi, 'newUIMultiplier', token.newMultiplier),
      },
      at,
    ),
    venuePrices: prices && { spot: prices[0], twap: prices[1] },
    isTwapRequired: tryDecodeResult(tradePolicyAbi, 'isTwapRequired', isTwapRequired) ?? false,
    isInMandate: tryDecodeResult(ownerControlsAbi, 'isTokenAllowed', isTokenAllowed) ?? true,
    openPositionId: tryDecodeResult(positionManagerAbi, 'openPositionId', token.openPositionId) ?? 0n,
    fills: new Map(quotedFills.map(({ amountIn, amountOut }) => [amountIn, amountOut || undefined] as const)),
    sale: quoted && sale.amountIn > 0n ? { tokenIn: sale.amountIn, usdcOut: sale.amountOut || undefined } : undefined,
  }
}

const NO_ALLOCATION = { cap: 0n, used: 0n, status: AllocationStatus.Removed, createdAt: 0n }

/** Returns an agent's allocation from the result of `getAllocation`; a removed one without a cap if there is none. */
export const decodeAllocation = (result: CallResult) =>
  tryDecodeResult(allocationManagerAbi, 'getAllocation', result) ?? NO_ALLOCATION

/** Reads the terms of an intent on one of the agent's positions. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND. */
export async function getPositionTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: TermsSubject & { positionId: bigint },
): Promise<{ block: Block; terms: IntentTerms & { position: Position; token: TokenTerms } }> {
  const { block, terms } = await getTerms(chain, agentId, subject)
  const { position, token } = terms
  if (position === undefined || token === undefined)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId: subject.positionId })
  return { block, terms: { ...terms, position, token } }
}

/** Returns the trade policy of a vault and track from the result of `limitsOf`; undefined without the extension. */
export function decodeTradePolicy(result: CallResult): TradePolicy | undefined {
  const limits = tryDecodeResult(tradePolicyAbi, 'limitsOf', result)
  return (
    limits && {
      maxEntrySlippageBps: BigInt(limits.maxEntrySlippageBps),
      maxExitSlippageBps: BigInt(limits.maxExitSlippageBps),
      exitSlippageStartBps: BigInt(limits.exitSlippageStartBps),
      exitWideningSeconds: BigInt(limits.exitWideningSeconds),
      minTradeUsdc: limits.minTradeUsdc,
      maxSpotDeviationBps: BigInt(limits.maxSpotDeviationBps),
      maxTwapDeviationBps: BigInt(limits.maxTwapDeviationBps),
      twapWindow: BigInt(limits.twapWindow),
      maxDeadlineSeconds: BigInt(limits.maxDeadlineSeconds),
    }
  )
}
