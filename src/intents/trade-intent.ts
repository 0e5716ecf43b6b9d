import { ladderBounds } from '@agent-trading-service/protocol/check'
import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { findBoundsProblem, findShapeProblem } from '@agent-trading-service/protocol/exit-ladder-validation'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { positionIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import type { Trade } from '@agent-trading-service/protocol/trade-events'
import type { Hex } from 'viem'
import type { Call } from '../call.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import type { Block, Traded } from '../chain/configured-chain.ts'
import { getSigningTerms, getTerms, type SigningTerms, type TermsSubject } from '../chain/read-intent-terms.ts'
import { readDollarBlock } from '../chain/token-restrictions.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { type Revert, refusalAtHead } from '../executor/present-intent.ts'
import { requestingAgent } from '../executor/requester.ts'
import { presentTradeResult } from '../resources/intent-status.ts'
import { marketTexts } from '../resources/price.ts'
import { transactionRequest } from '../rpc/requests.ts'
import type { TradePrimaryType } from './message-kinds.ts'
import { relaySignedBody, repeatingAgent, type SignedBody } from './relay-signed-body.ts'
import { restrictionRefusal } from './trade-quote.ts'
import { readTradeResult } from './trade-result.ts'

/** The signed body of one of the four trading operations. */
type TradeIntent = {
  agentId: bigint
  nonce: bigint
  signature: Hex
  kind: TradePrimaryType
  exits?: readonly ExitRule[]
  note?: string | undefined
  /** What it trades. Of what it buys, the router does not know whether its price is settled. */
  traded: Traded | undefined
}

/** What of an intent depends on the chain. */
type TradeContent = {
  /** The signed message without its nonce. */
  message: SignedBody['message']
  /** Returns the calldata of the router call that carries the message and its signature. */
  data: (signature: Hex) => Hex
  /** Returns why the service relays it in no case; undefined if it does. */
  refusalOfTerms?: () => Promise<Refusal | undefined>
}

/**
 * Relays an intent that an agent's signer has signed to the trade router, and returns its receipt. The position id
 * comes from the transaction's event. Throws AGENT_NOT_FOUND and the refusals of `relaySignedBody`.
 */
export async function relayTradeIntent(
  context: Context,
  call: Call,
  intent: TradeIntent,
  readContent: (terms: SigningTerms) => Promise<TradeContent> | TradeContent,
) {
  const { trading, config } = context
  const { agentId, kind, signature, nonce, exits, note } = intent
  const { TradeRouter } = trading.trading
  const execution = await relaySignedBody(context, call, { kind, nonce, by: repeatingAgent(agentId) }, async () => {
    const isPurchase = kind === 'OpenPosition' || kind === 'AddToPosition'
    const terms = await getSigningTerms(trading, agentId, { traded: intent.traded, isPurchase })
    const { agent, block, token, bought } = terms
    const { message, data, refusalOfTerms } = await readContent(terms)
    return {
      message,
      signature,
      exits,
      note,
      terms,
      by: { as: 'signer', agent: requestingAgent(agentId, agent, block), account: agent.signer },
      callWith: accepted => ({ to: TradeRouter, data: data(accepted) }),
      prices: token && priceNeedOf(trading, [token]),
      refusalOfRevert: ({ data, context: facts }) =>
        refusalWithContext(
          { trading, config },
          { agentId, exits, block, kind, message },
          { data, context: { ...facts, signer: agent.signer } },
        ),
      refusalOfTerms: async () =>
        bought?.quote.unsettled
          ? refuse('PRICE_UNSETTLED', { asset: bought.token, updatedAt: bought.quote.updatedAt })
          : refusalOfTerms?.(),
      findExecuted: async ({ groupNonce, call: { data } }, nextNonce) => {
        const trade = await findTrade(context, { agentId, nonce: BigInt(groupNonce), nextNonce, data })
        return trade && { hash: trade.transactionHash, blockNumber: trade.blockNumber, trade }
      },
    }
  })
  const positionId = execution.trade?.positionId ?? positionIdIn(TradeRouter, execution.logs)
  if (positionId === undefined) throw new Error('The receipt of a mined intent has no intent event')
  const result = await readTradeResult(context, { ...execution, agentId, data: execution.call.data })
  return {
    agentId: `${agentId}`,
    positionId: `${positionId}`,
    transactionHash: execution.hash,
    blockNumber: `${execution.blockNumber}`,
    ...presentTradeResult(result),
    ...(execution.warnings && { warnings: execution.warnings }),
  }
}

/** Throws INVALID_EXIT_RULES, naming rule and bound, for a ladder whose shape no contract accepts. */
export function assertLadderShape(exits: readonly ExitRule[]): void {
  const shape = findShapeProblem(exits)
  if (shape) throw refuse('INVALID_EXIT_RULES', { ...shape })
}

/**
 * Returns the refusal of a contract error with what the error itself does not carry: the violated exit bound, the
 * position that is open already, what the token's issuer did to it, and the market hours behind a stale price.
 */
async function refusalWithContext(
  { trading, config }: Pick<Context, 'trading' | 'config'>,
  {
    agentId,
    exits,
    block,
    kind,
    message,
  }: Pick<TradeIntent, 'agentId' | 'kind'> &
    Pick<TradeContent, 'message'> & { exits: readonly ExitRule[] | undefined; block: Block },
  { data, context }: Revert,
): Promise<Refusal> {
  const error = decodeRevert(data)
  const refusal = await refusalAtHead(trading, { data, context })
  if (error?.name === 'ExitRulesOutOfBounds' && exits !== undefined) {
    const { terms } = await getTerms(trading, agentId)
    const problem = findBoundsProblem(exits, ladderBounds(terms))
    const { transactionHash } = context
    return problem ? refuse('EXIT_RULES_OUT_OF_BOUNDS', problem).withDetails({ transactionHash }) : refusal
  }
  if (error?.name === 'PositionAlreadyOpen') {
    const { terms } = await getTerms(trading, agentId, { token: error.facts.token })
    const positionId = terms.token?.openPositionId
    const { transactionHash } = context
    return positionId
      ? refuse('POSITION_ALREADY_OPEN', { ...error.facts, positionId }).withDetails({ transactionHash })
      : refusal
  }
  if (error === undefined) {
    const { token, positionId, exitBps } = message as TermsSubject
    const { terms } = await getTerms(trading, agentId, { token, positionId, exitBps })
    const { transactionHash } = context
    const restricted = restrictionRefusal(terms, kind, trading.contracts.SwapAdapter)
    if (restricted) return restricted.withDetails({ transactionHash })
    const { asset: dollar } = terms.vault
    const block = await readDollarBlock(trading, { vault: terms.agent.vault, dollar })
    return block
      ? refuse('TOKEN_RESTRICTED', { token: dollar, restriction: block.value, account: block.account }).withDetails({
          transactionHash,
        })
      : refusal
  }
  if (error.name !== 'StalePrice') return refusal
  const { terms } = await getTerms(trading, agentId, { token: error.facts.asset })
  const { remedy } = terms.token ? marketTexts(config, terms.token, nowAt(block)) : {}
  return remedy === undefined ? refusal : refusal.withRemedy(remedy)
}

/** Older intents are not searched for, because too many trades would have to be read. */
const MAX_INTENTS_BACK = 50n
const MAX_TRADES = 200
/** Trades per intent that are read: exits fire between intents. */
const TRADES_PER_INTENT = 4
/**
 * Transactions that are read. There is more than one because orders use nonces and owners cancel them: these have no
 * trade.
 */
const MAX_CANDIDATES = 24

/**
 * Finds the trade that an intent caused although no lane knows the intent: its journal was lost, its account was
 * replaced, or it was forgotten, which happens a day after its deadline. The signed body is in the call data of the
 * transaction. `nonce` is that of the intent, `nextNonce` the agent's next one, which is read if it is not given.
 * Returns undefined if the intent was not executed, or too long ago. Throws HISTORY_UNAVAILABLE if neither is certain.
 */
async function findTrade(
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
