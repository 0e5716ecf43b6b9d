import { type Address, parseAbi } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { refuse } from '../errors.ts'
import { type Block, maybe, must, read, type TradingChain } from './client.ts'
import { erc20Abi, type TrackConfig } from './market.ts'
import { type Quote, strictestAge, toQuote } from './oracle.ts'
import { type Position, positionCalls, toPosition } from './positions.ts'
import { type Agent, agentCalls, toAgent } from './registry.ts'
import { symbolsOf } from './symbols.ts'
import { type Domain, domainAbi, toDomain } from './typed-data.ts'

/** The agent and what its next signed intent must match. */
export type Intender = { agent: Agent; nonce: bigint; domain: Domain }

const router = ({ trading }: TradingChain) => ({ address: trading.TradeRouter, abi: tradeRouterAbi }) as const
const intenderCalls = (chain: TradingChain, agentId: bigint) =>
  [
    ...agentCalls(chain, agentId),
    { ...router(chain), functionName: 'nonces', args: [agentId] },
    { address: chain.trading.TradeRouter, abi: domainAbi, functionName: 'eip712Domain' },
  ] as const

/** Reads in one round trip what an intent is verified against. Throws AGENT_NOT_FOUND. */
export async function getIntender(chain: TradingChain, agentId: bigint): Promise<{ block: Block } & Intender> {
  const { block, results } = await read(chain, intenderCalls(chain, agentId))
  const agent = toAgent(results[0], results[1])
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  return { block, agent, nonce: must(results[2]), domain: toDomain(must(results[3])) }
}

/** An agent's allocation; status 0 is active. Amounts in USDC base units. */
export type Allocation = { cap: bigint; used: bigint; status: number }

/** Everything that the router judges an intent by, at one block. */
export type Terms = Intender & {
  agentId: bigint
  registryPaused: boolean
  allocation: Allocation
  trackConfig: TrackConfig
  trackActive: boolean
  vault: { tradingPaused: boolean; totalAssets: bigint; idleAssets: bigint; asset: Address; allowedTokens: Address[] }
  day: bigint
  dailyTurnoverUsdc: bigint
  dailyRealizedPnlUsdc: bigint
  /** Absent when the terms are asked for without a token or position. */
  token: TokenTerms | undefined
  position: Position | undefined
}

/** The token of an intent: its quote, its decimals, and the agent's open position in it (0 is none). */
export type TokenTerms = {
  address: Address
  symbol: string
  decimals: number
  allowed: boolean
  quote: Quote
  openPositionId: bigint
  /** What the venue would give for USDC amounts, by amount; undefined where it cannot fill; empty without a quoter. */
  fills: Map<bigint, bigint | undefined>
  /** What the venue would give for the tokens of a reduce; undefined without a quoter. */
  sale: { tokenIn: bigint; usdcOut: bigint | undefined } | undefined
}

/** What the terms are asked for: on a token, on a position, or on neither; amounts are quoted by the venue. */
export type Subject = {
  token?: Address | undefined
  positionId?: bigint | undefined
  usdcAmount?: bigint | undefined
  exitBps?: number | undefined
}

const MAX_ALLOWED_TOKENS = 64

/**
 * Reads the terms of an agent's next intent in two round trips at one block. Throws AGENT_NOT_FOUND,
 * POSITION_NOT_FOUND.
 */
export async function getTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: Subject = {},
): Promise<{ block: Block; terms: Terms }> {
  const { trading, contracts } = chain
  const positionId = subject.positionId ?? 0n
  const venue = venueOf(chain)
  const quotable = subject.token ? [subject.token] : Object.values(chain.tokens)
  const first = await read(
    chain,
    [
      ...intenderCalls(chain, agentId),
      { address: trading.AllocationManager, abi: allocationManagerAbi, functionName: 'getAllocation', args: [agentId] },
      { address: contracts.AgentRegistry, abi: pausedAbi, functionName: 'paused' },
      ...positionCalls(chain, positionId),
    ] as const,
    undefined,
    venue && (subject.token ?? subject.positionId) !== undefined ? quotable.map(token => venue.poolFee(token)) : [],
  )
  const { block } = first
  const [agentRecord, isOwnerCurrent, nonce, domain, allocation, paused, ...positionResults] = first.results
  const agent = toAgent(agentRecord, isOwnerCurrent)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId: `${agentId}` })
  const position = subject.positionId === undefined ? undefined : toPosition(...positionResults)
  if (subject.positionId !== undefined && position?.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId: `${agentId}`, positionId: `${positionId}` })

  const token = subject.token ?? position?.token
  const day = block.timestamp / 86_400n
  const vault = { address: agent.vault, abi: [...mandateVaultAbi, ...erc20Abi] as const } as const
  const tracks = { address: contracts.VaultTrackRegistry, abi: vaultTrackRegistryAbi } as const
  const oracle = { address: contracts.PriceOracle, abi: priceOracleAbi } as const
  const asked = token ?? agent.vault
  const fee = token && maybe(first.more[quotable.indexOf(token)] ?? absent)
  const room = maybe(allocation) ? must(allocation).cap - must(allocation).used : 0n
  const amounts = subject.exitBps === undefined && token ? probes(room, subject.usdcAmount) : []
  const tokenIn = position && subject.exitBps ? (position.tokenAmount * BigInt(subject.exitBps)) / 10_000n : 0n
  const quotes =
    venue && token && fee !== undefined
      ? [
          ...amounts.map(amount => venue.buy(token, fee, amount)),
          ...(tokenIn > 0n ? [venue.sell(token, fee, tokenIn)] : []),
        ]
      : []
  const { results, more } = await read(
    chain,
    [
      { ...tracks, functionName: 'getVaultTrackConfig', args: [agent.vault, BigInt(agent.track)] },
      { ...tracks, functionName: 'isVaultTrackActive', args: [agent.vault, BigInt(agent.track)] },
      { ...vault, functionName: 'tradingPaused' },
      { ...vault, functionName: 'totalAssets' },
      { ...vault, functionName: 'idleAssets' },
      { ...vault, functionName: 'asset' },
      { ...vault, functionName: 'maxPriceAge' },
      { ...router(chain), functionName: 'dailyTurnoverUsdc', args: [agentId, day] },
      { ...router(chain), functionName: 'dailyRealizedPnlUsdc', args: [agentId, day] },
      { ...vault, functionName: 'isAllowedToken', args: [asked] },
      { ...oracle, functionName: 'latestRoundData', args: [asked] },
      { ...oracle, functionName: 'maxAgeOf', args: [asked] },
      {
        address: trading.PositionManager,
        abi: positionManagerAbi,
        functionName: 'openPositionId',
        args: [agentId, asked],
      },
      {
        address: contracts.TokenRegistry,
        abi: tokenRegistryAbi,
        functionName: 'tokenDecimals',
        args: [asked],
      },
    ] as const,
    block,
    [
      ...Array.from(
        { length: MAX_ALLOWED_TOKENS },
        (_, index) => ({ ...vault, functionName: 'allowedTokenAt', args: [BigInt(index)] }) as const,
      ),
      ...quotes,
    ],
  )
  const [config, active, tradingPaused, totalAssets, idleAssets, asset, maxPriceAge, turnover, pnl, ...rest] = results
  const [isAllowed, round, maxAge, openPositionId, decimals] = rest
  const allowed = more.slice(0, MAX_ALLOWED_TOKENS).flatMap(outcome => (maybe(outcome) as Address | undefined) ?? [])
  const filled = more
    .slice(MAX_ALLOWED_TOKENS)
    .map(outcome => maybe(outcome) as readonly [bigint, ...unknown[]] | undefined)
  const symbol = await symbolsOf(chain, [...allowed, ...(token ? [token] : [])])
  return {
    block,
    terms: {
      agentId,
      agent,
      nonce: must(nonce),
      domain: toDomain(must(domain)),
      registryPaused: must(paused),
      allocation: maybe(allocation) ?? { cap: 0n, used: 0n, status: 2 },
      trackConfig: must(config),
      trackActive: must(active),
      vault: {
        tradingPaused: must(tradingPaused),
        totalAssets: must(totalAssets),
        idleAssets: must(idleAssets),
        asset: must(asset),
        allowedTokens: allowed,
      },
      day,
      dailyTurnoverUsdc: must(turnover),
      dailyRealizedPnlUsdc: must(pnl),
      token: token && {
        address: token,
        symbol: symbol(token),
        decimals: maybe(decimals) ?? 18,
        allowed: must(isAllowed),
        quote: toQuote(maybe(round), strictestAge([must(maxPriceAge), maybe(maxAge) ?? 0n]), block),
        openPositionId: maybe(openPositionId) ?? 0n,
        fills: new Map(quotes.length === 0 ? [] : amounts.map((amount, index) => [amount, filled[index]?.[0]])),
        sale: quotes.length > 0 && tokenIn > 0n ? { tokenIn, usdcOut: filled.at(-1)?.[0] } : undefined,
      },
      position,
    },
  }
}

/** The terms of an intent on a position that the agent has. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND. */
export async function getPositionTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: Subject & { positionId: bigint },
): Promise<{ block: Block; terms: Terms & { position: Position; token: TokenTerms } }> {
  const { block, terms } = await getTerms(chain, agentId, subject)
  const { position, token } = terms
  if (position === undefined || token === undefined)
    throw refuse('POSITION_NOT_FOUND', { agentId: `${agentId}`, positionId: `${subject.positionId}` })
  return { block, terms: { ...terms, position, token } }
}

const PROBES = 16n
const absent = { status: 'failure', error: new Error('not asked') } as const

/** Amounts at which the venue is asked how deep it is: the room in sixteenths, then halves of the smallest. */
function probes(room: bigint, usdcAmount: bigint | undefined): bigint[] {
  const amounts = new Set<bigint>()
  for (let share = PROBES; share > 0n; share--) amounts.add((room * share) / PROBES)
  for (let amount = room / (2n * PROBES); amount > 1_000_000n; amount /= 2n) amounts.add(amount)
  if (usdcAmount !== undefined) amounts.add(usdcAmount)
  return [...amounts].filter(amount => amount > 0n)
}

const venueAbi = parseAbi([
  'function poolFeeOf(address token) view returns (uint24)',
  // Not a view in the quoter's source, since it quotes by a swap that it reverts; called, never sent.
  'function quoteExactInputSingle((address tokenIn, address tokenOut, uint256 amountIn, uint24 fee, uint160 sqrtPriceLimitX96) params) view returns (uint256 amountOut, uint160 sqrtPriceX96After, uint32 ticksCrossed, uint256 gasEstimate)',
])

/** The calls that quote a swap on the venue, where the deployment names its adapter and a quoter. */
function venueOf({ contracts }: TradingChain) {
  const { QuoterV2, SwapAdapter, USDC } = contracts
  if (QuoterV2 === undefined || SwapAdapter === undefined || USDC === undefined) return undefined
  const quote = (tokenIn: Address, tokenOut: Address, fee: number, amountIn: bigint) =>
    ({
      address: QuoterV2,
      abi: venueAbi,
      functionName: 'quoteExactInputSingle',
      args: [{ tokenIn, tokenOut, amountIn, fee, sqrtPriceLimitX96: 0n }],
    }) as const
  return {
    poolFee: (token: Address) =>
      ({ address: SwapAdapter, abi: venueAbi, functionName: 'poolFeeOf', args: [token] }) as const,
    buy: (token: Address, fee: number, usdcIn: bigint) => quote(USDC, token, fee, usdcIn),
    sell: (token: Address, fee: number, tokenIn: bigint) => quote(token, USDC, fee, tokenIn),
  }
}

const pausedAbi = parseAbi(['function paused() view returns (bool)'])
