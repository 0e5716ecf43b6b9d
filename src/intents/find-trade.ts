import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Hex } from 'viem'
import { getSigningTerms } from '../chain/read-intent-terms.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { transactionRequest } from '../rpc/requests.ts'

/** Older intents are not searched for, because too many trades would have to be read. */
const MAX_INTENTS_BACK = 50n
const MAX_TRADES = 200
/** Trades per intent that are read: exits fire between intents. */
const TRADES_PER_INTENT = 4
/** Transactions that are read. There is more than one because orders use nonces and owners cancel them: these have no trade. */
const MAX_CANDIDATES = 24

/**
 * Finds the trade that an intent caused although no lane knows the intent: its journal was lost, its account was replaced, or it
 * was forgotten, which happens a day after its deadline. The signed body is in the call data of the transaction. `nonce` is that of
 * the intent, `nextNonce` the agent's next one, which is read if it is not given. Returns undefined if the intent was not executed,
 * or too long ago. Throws HISTORY_UNAVAILABLE if neither is certain.
 */
export async function findTrade(
  { trading, history }: Pick<Context, 'trading' | 'history'>,
  { agentId, nonce, data, ...given }: { agentId: bigint; nonce: bigint; nextNonce: bigint | undefined; data: Hex },
): Promise<Trade | undefined> {
  const nextNonce = given.nextNonce ?? (await getSigningTerms(trading, agentId)).nonce
  const back = nextNonce - nonce
  if (back <= 0n || back > MAX_INTENTS_BACK) return undefined
  const limit = Math.min(TRADES_PER_INTENT * (Number(back) + MAX_CANDIDATES), MAX_TRADES)
  const { trades, lagBlocks } = await history.trades({ agentId, limit })
  if (lagBlocks > 0) throw refuse('HISTORY_UNAVAILABLE')
  const intents = trades.filter(({ source }) => source === 'intent')
  const candidates = intents.slice(Math.max(0, Number(back) - MAX_CANDIDATES), Number(back))
  const responses = await trading.rpc.batch(
    candidates.map(({ transactionHash }) => transactionRequest(transactionHash)),
  )
  const found = candidates.find((_, index) => responses[index]?.result?.input.includes(data.slice(2)))
  if (found === undefined && responses.some(({ result }) => !result)) throw refuse('HISTORY_UNAVAILABLE')
  return found
}
