import { type Address, zeroAddress } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { refuse } from '../errors/catalogue.ts'
import { AllocationStatus } from '../protocol/enums.ts'
import type { Position } from '../protocol/position.ts'
import { strictestMaxAge, toPriceQuote } from '../protocol/price-quote.ts'
import type { TokenTerms, TradingTerms } from '../protocol/trading-terms.ts'
import { type Domain, domainAbi, toDomain } from '../protocol/typed-data.ts'
import { type Agent, type AgentRecord, agentCalls, agentOf, toRecord } from './agents.ts'
import { type Block, maybe, must, read, type TradingChain } from './chain.ts'
import { type Answer, outcomeOf } from './multicall.ts'
import { positionOf } from './positions.ts'
import { askReader } from './service-reader.ts'
import { symbolsOf } from './token-symbols.ts'

/** The agent and what its next signed intent must match. */
export type Intender = { agent: AgentRecord; nonce: bigint; domain: Domain }

// The domain of a router is fixed in its code.
const domains = new WeakMap<object, Domain>()

/** Reads in one round trip what an intent is verified against. Throws AGENT_NOT_FOUND. */
export async function getIntender(chain: TradingChain, agentId: bigint): Promise<{ block: Block } & Intender> {
  const { trading } = chain
  const router = { address: trading.TradeRouter, abi: tradeRouterAbi } as const
  const domainCall = { ...router, abi: domainAbi, functionName: 'eip712Domain' } as const
  const known = domains.get(trading)
  const unknown: (typeof domainCall)[] = known ? [] : [domainCall]
  const calls = [agentCalls(chain, agentId)[0], { ...router, functionName: 'nonces', args: [agentId] }] as const
  const { block, results, more } = await read(chain, calls, undefined, unknown)
  const agent = toRecord(results[0])
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  const nonce = must(results[1])
  const [domain] = known ? [known] : more.map(outcome => toDomain(must(outcome)))
  if (domain === undefined) throw new Error('a domain was neither known nor read')
  domains.set(trading, domain)
  return { block, agent, nonce, domain }
}

/** Everything that an intent is checked against, at one block. */
export type Terms = Intender &
  TradingTerms & {
    agent: Agent
    agentId: bigint
    vault: { asset: Address; allowedTokens: Address[] }
    /** Days since the epoch. */
    day: bigint
  }

/** What the terms are asked for: on a token, on a position, or on neither; amounts are quoted by the venue. */
export type Subject = {
  token?: Address | undefined
  positionId?: bigint | undefined
  usdcAmount?: bigint | undefined
  exitBps?: number | undefined
}

/** Reads the terms of an agent's next intent in one round trip. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND. */
export async function getTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: Subject = {},
): Promise<{ block: Block; terms: Terms }> {
  const asked = {
    agentId,
    token: subject.token ?? zeroAddress,
    positionId: subject.positionId ?? 0n,
    usdcAmount: subject.usdcAmount ?? 0n,
    exitBps: BigInt(subject.exitBps ?? 0),
  }
  const { block, answers } = await askReader(chain, 'intentTerms', asked)
  const [terms] = answers
  const agent = agentOf(terms.agent)
  if (agent === undefined) throw refuse('AGENT_NOT_FOUND', { agentId })
  const position = subject.positionId === undefined ? undefined : positionOf(terms.position)
  if (subject.positionId !== undefined && position?.agentId !== agentId)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId: subject.positionId })

  const address = subject.token ?? position?.token
  const allowedTokens = terms.vault.allowedTokens.filter(token => token !== zeroAddress)
  const symbol = await symbolsOf(chain, [...allowedTokens, ...(address ? [address] : [])])
  return {
    block,
    terms: {
      agentId,
      agent,
      nonce: must(outcomeOf(tradeRouterAbi, 'nonces', terms.nonce)),
      domain: toDomain(must(outcomeOf(domainAbi, 'eip712Domain', terms.domain))),
      registryPaused: must(outcomeOf(agentRegistryAbi, 'paused', terms.registryPaused)),
      allocation: allocationOf(terms.allocation),
      trackConfig: must(outcomeOf(vaultTrackRegistryAbi, 'getVaultTrackConfig', terms.trackConfig)),
      trackActive: must(outcomeOf(vaultTrackRegistryAbi, 'isVaultTrackActive', terms.trackActive)),
      vault: {
        tradingPaused: must(outcomeOf(mandateVaultAbi, 'tradingPaused', terms.vault.tradingPaused)),
        totalAssets: must(outcomeOf(mandateVaultAbi, 'totalAssets', terms.vault.totalAssets)),
        idleAssets: must(outcomeOf(mandateVaultAbi, 'idleAssets', terms.vault.idleAssets)),
        asset: must(outcomeOf(mandateVaultAbi, 'asset', terms.vault.asset)),
        allowedTokens,
      },
      day: terms.day,
      dailyTurnoverUsdc: must(outcomeOf(tradeRouterAbi, 'dailyTurnoverUsdc', terms.dailyTurnover)),
      dailyRealizedPnlUsdc: must(outcomeOf(tradeRouterAbi, 'dailyRealizedPnlUsdc', terms.dailyRealizedPnl)),
      token: address && { address, symbol: symbol(address), ...tokenTermsOf(terms, block) },
      position,
    },
  }
}

type TermsAnswers = Awaited<ReturnType<typeof askReader<'intentTerms'>>>['answers'][0]

function tokenTermsOf({ token, vault, quoted, fills, sale }: TermsAnswers, block: Block) {
  const round = maybe(outcomeOf(priceOracleAbi, 'latestRoundData', token.round))
  const maxAge = maybe(outcomeOf(priceOracleAbi, 'maxAgeOf', token.maxAge)) ?? 0n
  const maxPriceAge = must(outcomeOf(mandateVaultAbi, 'maxPriceAge', vault.maxPriceAge))
  // The asked amount comes first, and may be among the probed ones too.
  const filled = fills.filter(({ amountIn }) => amountIn > 0n).toReversed()
  return {
    decimals: maybe(outcomeOf(tokenRegistryAbi, 'tokenDecimals', token.decimals)) ?? 18,
    allowed: must(outcomeOf(mandateVaultAbi, 'isAllowedToken', token.isAllowed)),
    quote: toPriceQuote(round, strictestMaxAge([maxPriceAge, maxAge]), block),
    openPositionId: maybe(outcomeOf(positionManagerAbi, 'openPositionId', token.openPositionId)) ?? 0n,
    fills: new Map(filled.map(({ amountIn, amountOut }) => [amountIn, amountOut || undefined] as const)),
    sale: quoted && sale.amountIn > 0n ? { tokenIn: sale.amountIn, usdcOut: sale.amountOut || undefined } : undefined,
  }
}

const NO_ALLOCATION = { cap: 0n, used: 0n, status: AllocationStatus.Removed, createdAt: 0n }

/** The allocation that `getAllocation` answered; a removed one without room when there is none. */
export const allocationOf = (answer: Answer) =>
  maybe(outcomeOf(allocationManagerAbi, 'getAllocation', answer)) ?? NO_ALLOCATION

/** The terms of an intent on a position that the agent has. Throws AGENT_NOT_FOUND, POSITION_NOT_FOUND. */
export async function getPositionTerms(
  chain: TradingChain,
  agentId: bigint,
  subject: Subject & { positionId: bigint },
): Promise<{ block: Block; terms: Terms & { position: Position; token: TokenTerms } }> {
  const { block, terms } = await getTerms(chain, agentId, subject)
  const { position, token } = terms
  if (position === undefined || token === undefined)
    throw refuse('POSITION_NOT_FOUND', { agentId, positionId: subject.positionId })
  return { block, terms: { ...terms, position, token } }
}
