import type { Address } from 'viem'
import { readAgentLimits } from '../chain/agent-limits.ts'
import type { Block, TradingChain } from '../chain/chain.ts'
import { readMarket } from '../chain/listings.ts'
import type { Trade } from '../protocol/trade-events.ts'
import type { Fact } from './event.ts'
import { type Holding, readHoldings, readMandates } from './index-changes.ts'
import type { Log } from './store.ts'

const DAY_SECONDS = 86_400
const breachNames = ['drawdown', 'dailyLoss'] as const

/** What has happened since the last look, and the time of the newest block in Unix seconds. */
export type Happened = { traded: ReadonlySet<number>; priced: ReadonlySet<Address>; timestamp: number }

export type Edges = ReturnType<typeof createEdges>

/**
 * Watches what no log tells: limits of agents that are reached or left, and prices of what they hold that grow stale or
 * are fresh again. What is so now is in the log's flags, so that each edge is told once, also after a restart.
 */
export function createEdges({ chain, db, log }: { chain: TradingChain; db: D1Database; log: Log }) {
  let holdings: Map<bigint, Holding> | undefined
  let isFirst = true

  async function held(): Promise<Map<bigint, Holding>> {
    holdings ??= new Map((await readHoldings(db)).map(holding => [holding.positionId, holding]))
    return holdings
  }

  /** Takes notice of trades, in order. */
  function follow(trades: readonly Trade[]) {
    for (const { type, positionId, agentId, token, vault } of trades) {
      if (type === 'PositionOpened') holdings?.set(positionId, { positionId, agentId: Number(agentId), token, vault })
      if (type === 'PositionClosed') holdings?.delete(positionId)
    }
  }

  /** What was taken back may have opened or closed positions. */
  function forget() {
    holdings = undefined
  }

  /** The edges since the last look, with what they do to the flags. Throws CHAIN_UNREACHABLE; then nothing has changed. */
  async function look(happened: Happened): Promise<{ facts: Fact[]; settle: () => void }> {
    const positions = [...(await held()).values()]
    const [prices, risks] = await Promise.all([lookAtPrices(positions), lookAtRisks(positions, happened)])
    const changes = [...prices, ...risks]
    return {
      facts: changes.flatMap(({ facts }) => facts),
      settle() {
        isFirst = false
        for (const { flag, isRaised } of changes) isRaised ? log.raise(flag) : log.lower(flag)
      },
    }
  }

  type Change = { flag: string; isRaised: boolean; facts: Fact[] }

  async function lookAtPrices(positions: readonly Holding[]): Promise<Change[]> {
    const kept = new Map(positions.map(({ vault, token }) => [`stale ${vault} ${token}`, { vault, token }]))
    const gone = [...log.flags].filter(flag => flag.startsWith('stale ') && !kept.has(flag))
    const changes: Change[] = gone.map(flag => ({ flag, isRaised: false, facts: [] }))
    if (kept.size === 0) return changes
    const { block, market } = await readMarket(chain)
    for (const [flag, { vault, token }] of kept) {
      const quote = market.quoteIn(
        token,
        market.vaults.find(({ address }) => address === vault),
      )
      if (quote.stale === log.flags.has(flag)) continue
      const holders = new Set(
        positions.flatMap(held => (held.vault === vault && held.token === token ? held.agentId : [])),
      )
      const symbol = market.tokens.find(({ address }) => address === token)?.symbol ?? token
      const data = { symbol, token, vault, updatedAt: `${quote.updatedAt}`, asOf: asOf(block) }
      const type = quote.stale ? 'price-stale' : 'price-fresh'
      changes.push({
        ...{ flag, isRaised: quote.stale },
        facts: [...holders].map(agentId => ({ type, agentId, vault, data: { agentId: `${agentId}`, ...data } })),
      })
    }
    return changes
  }

  async function lookAtRisks(
    positions: readonly Holding[],
    { traded, priced, timestamp }: Happened,
  ): Promise<Change[]> {
    const moved = positions.filter(({ token }) => isFirst || priced.has(token)).map(({ agentId }) => agentId)
    const breached = [...log.flags].flatMap(flag => /^breach (\d+) /.exec(flag)?.[1] ?? []).map(Number)
    const agents = await readMandates(db, [...new Set([...traded, ...moved, ...breached])])
    const { block, limits } = await readAgentLimits(chain, agents, BigInt(Math.floor(timestamp / DAY_SECONDS)))
    const vaultOf = new Map(agents.map(({ agentId, vault }) => [agentId, vault]))
    return limits.flatMap(({ agentId, drawdownBps, maxDrawdownBps, ...reached }) =>
      breachNames.flatMap((rule): Change[] => {
        const flag = `breach ${agentId} ${rule}`
        const isUnknown = rule === 'drawdown' && drawdownBps === undefined
        if (block === undefined || isUnknown || reached[rule] === log.flags.has(flag)) return []
        const data = {
          ...{ agentId: `${agentId}`, rule, breached: reached[rule] },
          ...(drawdownBps !== undefined && { currentDrawdownBps: Number(drawdownBps) }),
          maxDrawdownBps: Number(maxDrawdownBps),
          dailyLossUsedUsdc: `${reached.dailyLossUsedUsdc}`,
          maxDailyLossUsdc: `${reached.maxDailyLossUsdc}`,
          asOf: asOf(block),
        }
        return [
          { flag, isRaised: reached[rule], facts: [{ type: 'risk', agentId, vault: vaultOf.get(agentId), data }] },
        ]
      }),
    )
  }

  return { follow, forget, look }
}

const asOf = ({ number, timestamp }: Block) => ({ blockNumber: `${number}`, blockTimestamp: `${timestamp}` })
