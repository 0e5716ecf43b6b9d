import type { Address, Hex } from 'viem'
import type { Trade } from '../../protocol/trade-events.ts'

/** A row of `trades`. */
export type TradeRow = {
  agent_id: number
  block: number
  log_index: number
  position_id: number
  type: Trade['type']
  source: Trade['source']
  token: Address
  vault: Address
  usdc_amount: string | null
  token_amount: string | null
  price_usdc: string | null
  realized_pnl_usdc: string | null
  exit_bps: number | null
  rule_index: number | null
  trigger_type: number | null
  trigger_bps: number | null
  transaction_hash: Hex
  timestamp: number
}

/** The trade that a row holds. */
export function toTrade(row: TradeRow): Trade {
  const { type, source, token, vault, usdc_amount, token_amount, price_usdc, realized_pnl_usdc } = row
  const { exit_bps, rule_index, trigger_type, trigger_bps } = row
  return {
    ...{ agentId: BigInt(row.agent_id), positionId: BigInt(row.position_id), type, source, token, vault },
    ...{ blockNumber: BigInt(row.block), logIndex: row.log_index, timestamp: BigInt(row.timestamp) },
    transactionHash: row.transaction_hash,
    ...(usdc_amount !== null && { usdcAmount: BigInt(usdc_amount) }),
    ...(token_amount !== null && { tokenAmount: BigInt(token_amount) }),
    ...(price_usdc !== null && { priceUsdc: BigInt(price_usdc) }),
    ...(realized_pnl_usdc !== null && { realizedPnlUsdc: BigInt(realized_pnl_usdc) }),
    ...(exit_bps !== null && { exitBps: exit_bps }),
    ...(rule_index !== null && { ruleIndex: rule_index }),
    ...(trigger_type !== null && {
      rule: { triggerType: trigger_type, triggerBps: BigInt(trigger_bps ?? 0), exitBps: exit_bps ?? 0 },
    }),
  }
}
