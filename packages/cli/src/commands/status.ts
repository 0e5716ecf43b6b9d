import { usdcText } from '@agent-trading-service/protocol/check-figures'
import { percentText } from '@agent-trading-service/protocol/percent'
import type { Command } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { describeLimits } from '../limits/describe-limits.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, type ServiceOptions } from './options.ts'
import { agentMissing } from './reads.ts'

type StatusOptions = ServiceOptions & { agent?: string }

/**
 * `ats status`: what an agent has, what it made today, how far its positions are from their stops, and what its limits
 * leave.
 */
export function statusCommand(): Command {
  return createServiceCommand(
    'status',
    "show an agent's equity, the day's PnL, its positions with their stops, and the used limits",
    'ats status --agent 1',
  )
    .addOption(agentOption())
    .action(status)
}

async function status({ agent, output, ...service }: StatusOptions): Promise<void> {
  if (agent === undefined) throw agentMissing()
  const reads = createReader(service)
  const [risk, { positions }, { agent: record }, { mandate }] = await withProgress(
    'Reading the agent',
    Promise.all([
      reads.getRiskState({ agentId: agent }),
      reads.listPositions({ agentId: agent }),
      reads.getAgent({ agentId: agent }),
      reads.getMandate({ agentId: agent }),
    ]),
  )
  const { allocation, equity, pnl, derived } = risk
  const rows = positions.map(position => {
    const stop = position.pendingRules.find(({ triggerBps }) => triggerBps < 0)
    const { returnBps } = position.derived
    return {
      positionId: position.positionId,
      symbol: position.symbol,
      usdcCostBasis: position.usdcCostBasis,
      unrealizedPnlUsdc: position.unrealizedPnlUsdc,
      returnBps,
      stopBps: stop?.triggerBps ?? null,
      distanceToStopBps: stop && returnBps !== null ? returnBps - stop.triggerBps : null,
    }
  })
  const facts = {
    agentId: agent,
    name: record.name,
    status: record.statusName,
    track: record.trackName,
    equityUsdc: equity.currentUsdc,
    dailyRealizedPnlUsdc: pnl.dailyRealizedUsdc,
    unrealizedPnlUsdc: derived.unrealizedPnlUsdc,
    positions: rows,
    limits: {
      allocationUsedUsdc: allocation.used,
      allocationUsdc: allocation.effectiveCap,
      dailyLossUsedUsdc: derived.dailyLossUsedUsdc,
      maxDailyLossUsdc: derived.maxDailyLossUsdc,
      drawdownBps: equity.currentDrawdownBps,
      maxDrawdownBps: risk.accountRiskBounds.maxDrawdownBps,
      mandate: mandate.mode,
      local: describeLimits(homeFolder()),
    },
    priceStale: risk.priceStale,
  }
  const printer = createPrinter(output)
  if (output === 'json') return printer.result(facts)
  const { limits } = facts
  const local = limits.local
  printer.result({
    agent: `${agent} ${record.name} (${facts.status}, ${facts.track}, mandate ${limits.mandate})`,
    equity: `${amount(facts.equityUsdc)} USDC${risk.priceStale ? ' (a price is stale)' : ''}`,
    today: `${amount(facts.dailyRealizedPnlUsdc)} USDC realized, ${amount(facts.unrealizedPnlUsdc)} USDC unrealized`,
    allocation: used(limits.allocationUsedUsdc, limits.allocationUsdc),
    'daily loss': used(limits.dailyLossUsedUsdc, limits.maxDailyLossUsdc),
    drawdown: `${percentText(limits.drawdownBps)} of ${percentText(limits.maxDrawdownBps)}`,
    'this machine':
      local.perDayUsdc === null ? 'no limit per day' : used(local.spentInLast24HoursUsdc, local.perDayUsdc),
    'open positions': rows.map(row => ({
      id: row.positionId,
      symbol: row.symbol,
      costUsdc: row.usdcCostBasis,
      pnlUsdc: row.unrealizedPnlUsdc,
      return: bpsText(row.returnBps),
      stop: bpsText(row.stopBps),
      'to stop': bpsText(row.distanceToStopBps),
    })),
  })
}

const amount = (digits: string | null | undefined) =>
  digits === null || digits === undefined ? '-' : usdcText(BigInt(digits))
const used = (part: string | null | undefined, whole: string | null | undefined) =>
  `${amount(part)} of ${amount(whole)} USDC`
const bpsText = (bps: number | null | undefined) => (bps === null || bps === undefined ? '-' : percentText(bps))
