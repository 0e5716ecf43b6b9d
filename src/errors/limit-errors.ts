import type { Address } from 'viem'
import { row } from './error-row.ts'

const CHECK_MAXIMUM = "Stay within the quote's maxUsdcAmount"

/** New risk that the agent's status, its allocation or its track's policy does not allow. Amounts are USDC base units. */
export const limitErrors = {
  AGENT_NOT_TRADABLE: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `Agent ${agentId} is not active, so it cannot take new risk.`,
    remedy: 'Reducing and closing still work; GET /agents/{agentId} shows the status.',
  }),
  ALLOCATION_NOT_ACTIVE: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `The allocation of agent ${agentId} is not active.`,
    remedy: 'Reducing and closing still work; the operator activates allocations.',
  }),
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
  INSUFFICIENT_IDLE_ASSETS: row<{ idle: bigint; required: bigint }>({
    status: 400,
    sentence: ({ idle, required }) =>
      `The vault has ${idle} USDC base units of idle assets; the trade needs ${required}.`,
    remedy: `${CHECK_MAXIMUM}.`,
  }),
  VAULT_TRACK_NOT_ACTIVE: row<{ vault: Address; trackId: bigint }>({
    status: 400,
    sentence: ({ vault, trackId }) => `Track ${trackId} is not active in the vault ${vault}.`,
    remedy: 'GET /vaults/{id} shows the tracks; the operator activates them.',
  }),
  REGISTRY_PAUSED: row({
    status: 503,
    sentence: () => 'The agent registry is paused: new risk is rejected.',
    remedy: 'Reducing and closing still work; try again once the operator has unpaused the registry.',
    retryable: true,
  }),
  TRADING_PAUSED: row({
    status: 503,
    sentence: () => "Trading is paused in the agent's vault.",
    remedy: 'Ladder updates still work; try again once the operator has unpaused the vault.',
    retryable: true,
  }),
}
