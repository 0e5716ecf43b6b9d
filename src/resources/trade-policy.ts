import type { TradePolicy } from '@agent-trading-service/protocol/trade-policy'
import { z } from 'zod'
import { bps, digits, usdc } from './primitives.ts'

export const tradePolicy = z
  .object({
    maxEntrySlippageBps: bps('Largest maxSlippageBps that an open or add may sign'),
    maxExitSlippageBps: bps('How far below the oracle value a sale may end at most'),
    exitSlippageStartBps: bps('Slippage of an exit when it becomes due; also the least that a reduce gets'),
    exitWideningSeconds: digits('Seconds in which the slippage of a due exit grows from its start to its maximum'),
    minTradeUsdc: usdc('Smallest open, add or partial reduce; 0 means no limit'),
    maxSpotDeviationBps: bps("Largest distance of the pool's price from the oracle price; 0 means no limit"),
    maxTwapDeviationBps: bps(
      "Largest distance of the pool's time-weighted price from the oracle price; 0 means no limit",
    ),
    twapWindowSeconds: digits('Length of the time-weighted average in seconds'),
    maxDeadlineSeconds: digits('How far ahead the deadline of an intent may be, in seconds; 0 means no limit'),
  })
  .meta({ id: 'TradePolicy', description: "The vault's limits of prices, sizes and deadlines on the agent's track" })

export const presentTradePolicy = (policy: TradePolicy): z.input<typeof tradePolicy> => ({
  maxEntrySlippageBps: Number(policy.maxEntrySlippageBps),
  maxExitSlippageBps: Number(policy.maxExitSlippageBps),
  exitSlippageStartBps: Number(policy.exitSlippageStartBps),
  exitWideningSeconds: `${policy.exitWideningSeconds}`,
  minTradeUsdc: `${policy.minTradeUsdc}`,
  maxSpotDeviationBps: Number(policy.maxSpotDeviationBps),
  maxTwapDeviationBps: Number(policy.maxTwapDeviationBps),
  twapWindowSeconds: `${policy.twapWindow}`,
  maxDeadlineSeconds: `${policy.maxDeadlineSeconds}`,
})
