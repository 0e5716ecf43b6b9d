import type { Address } from 'viem'
import { row } from './error-row.ts'

const CHECK_MAXIMUM = "Stay within the quote's maxUsdcAmount"

/** New risk that exceeds a limit of the agent, its track or its vault. Amounts are USDC base units. */
export const riskLimitErrors = {
  EXCEEDS_ALLOCATION_CAP: row<{ agentId: bigint; used: bigint; cap: bigint }>({
    status: 400,
    sentence: ({ agentId, used, cap }) =>
      `The positions of agent ${agentId} would cost ${used} USDC base units; its allocation cap is ${cap}.`,
    remedy: `${CHECK_MAXIMUM}, or reduce a position first.`,
  }),
  EXCEEDS_MAX_TRADE_SIZE: row<{ tradeSize: bigint; maxTradeSize: bigint }>({
    status: 400,
    sentence: ({ tradeSize, maxTradeSize }) =>
      `The trade has ${tradeSize} USDC base units; the maximum trade size is ${maxTradeSize}.`,
    remedy: `${CHECK_MAXIMUM}.`,
  }),
  EXCEEDS_DAILY_TURNOVER: row<{ agentId: bigint; turnover: bigint; max: bigint }>({
    status: 400,
    sentence: ({ agentId, turnover, max }) =>
      `The day's turnover of agent ${agentId} would be ${turnover} USDC base units; the limit is ${max}.`,
    remedy: `${CHECK_MAXIMUM}, or wait for the next UTC day.`,
  }),
  EXCEEDS_DAILY_LOSS: row<{ agentId: bigint; lossUsdc: bigint; maxLossUsdc: bigint }>({
    status: 400,
    sentence: ({ agentId, lossUsdc, maxLossUsdc }) =>
      `The day's realized loss of agent ${agentId} is ${lossUsdc} USDC base units and has reached the limit of ${maxLossUsdc}.`,
    remedy: 'Wait for the next UTC day to take new risk; reducing still works.',
  }),
  EXCEEDS_MAX_DRAWDOWN: row<{ agentId: bigint; drawdownBps: bigint; maxDrawdownBps: bigint }>({
    status: 400,
    sentence: ({ agentId, drawdownBps, maxDrawdownBps }) =>
      `The drawdown of agent ${agentId} is ${drawdownBps} basis points; its track allows ${maxDrawdownBps}.`,
    remedy: 'Buying is suspended until equity recovers; reducing and exits still work.',
  }),
  INSUFFICIENT_IDLE_ASSETS: row<{ idle: bigint; required: bigint }>({
    status: 400,
    sentence: ({ idle, required }) =>
      `The vault has ${idle} USDC base units of idle assets; the trade needs ${required}.`,
    remedy: `${CHECK_MAXIMUM}.`,
  }),
  CAPS_EXCEED_ASSETS: row<{ vault: Address; caps: bigint; assets: bigint }>({
    status: 400,
    sentence: ({ vault, caps, assets }) =>
      `The allocation caps of the vault ${vault} would be ${caps} USDC base units; its assets are ${assets}.`,
    remedy: 'Choose another vault, or wait until this one has more assets.',
  }),
}
