import { decodeRevert } from '@agent-trading-service/protocol/decode-revert'
import { findBoundsProblem, findShapeProblem } from '@agent-trading-service/protocol/exit-ladder-validation'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { positionIdIn } from '@agent-trading-service/protocol/ids-from-receipt'
import { ladderBounds } from '@agent-trading-service/protocol/router-check-inputs'
import { digestOf, type Message, type PrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { Hex } from 'viem'
import type { Call } from '../call.ts'
import type { Block } from '../chain/block-type.ts'
import { getSigningTerms, getTerms, type SigningTerms } from '../chain/read-intent-terms.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'
import { type Revert, refusalAtHead } from '../executor/failed-intent-refusals.ts'
import type { RelayRequest } from '../executor/relay-types.ts'
import { countSigner } from './count-signer.ts'
import { deadlineRefusal, deadlineWarnings } from './deadline.ts'
import { findExecutedIntent } from './find-executed-intent.ts'
import { gasUseOfAgent } from './gas-budget-check.ts'
import { type AgentIntentKind, intakeRefusalOfIntent } from './intake-check.ts'
import { marketClosedTexts } from './market-closed-texts.ts'
import { findRepeated, relayOrRefuse, wasAccepted } from './relay-or-refuse.ts'

/** A signed intent of one of the four trading operations. */
type TradingIntent = {
  agentId: bigint
  deadline: bigint
  nonce: bigint
  signature: Hex
  kind: AgentIntentKind
  primaryType: PrimaryType
  /** Returns the signed message, given the agent's on-chain state. */
  message: (signingTerms: SigningTerms) => Message
  /** Returns the calldata of the router call that carries the message. */
  data: (signingTerms: SigningTerms) => Hex
  exits?: readonly ExitRule[]
  /** Whether it sells a whole position. */
  closesPosition?: boolean
}

/**
 * Verifies a signed intent and relays it to the trade router. Returns the intent receipt; the position id comes from the
 * transaction's event. Posting the identical body again returns the same receipt and never executes twice, even though
 * its nonce has been used and the signer may have been replaced by then; an intent that no lane knows any more is looked up
 * on the chain. Throws the refusal of every other outcome.
 */
export async function relayIntent(context: Context, call: Call, intent: TradingIntent) {
  const { trading, executor, keeper, config } = context
  const { agentId, nonce, deadline, signature, kind, primaryType } = intent
  const signingTerms = await getSigningTerms(trading, agentId)
  const { agent, domain, block } = signingTerms
  const message = intent.message(signingTerms)
  const digest = digestOf(domain, primaryType, message)
  const relay: RelayRequest = {
    digest,
    kind,
    ...gasUseOfAgent({ agentId, agent, block }),
    ...(intent.closesPosition !== undefined && { closesPosition: intent.closesPosition }),
    groupNonce: `${nonce}`,
    deadline,
    call: { to: trading.trading.TradeRouter, data: intent.data(signingTerms) },
  }
  const signed = { domain, primaryType, message, digest, exits: intent.exits }
  await verifySignature(trading, agent.signer, signed, signature).catch(async refusal => {
    if (!(await findRepeated(executor, relay))) throw refusal
  })
  const invalid =
    deadlineRefusal(deadline, block) ??
    (nonce === signingTerms.nonce
      ? undefined
      : refuse('INVALID_NONCE', { given: nonce, expected: signingTerms.nonce })) ??
    (await intakeRefusalOfIntent(context, kind))
  /** Returns the receipt of an intent that is on the chain although no lane knows it; otherwise throws the refusal. */
  const receiptOrRefusal = async (refusal: unknown, nextNonce: bigint) => {
    const trade = await findExecutedIntent(context, { agentId, nonce, nextNonce, data: relay.call.data })
    if (trade === undefined) throw refusal
    return {
      agentId: `${agentId}`,
      positionId: `${trade.positionId}`,
      transactionHash: trade.transactionHash,
      blockNumber: `${trade.blockNumber}`,
    }
  }
  if (invalid && !(await wasAccepted(executor, relay))) return receiptOrRefusal(invalid, signingTerms.nonce)
  if (!invalid) await countSigner(call, agent.signer, { getsOut: kind === 'reduce' })

  const mined = await relayOrRefuse(context, call, executor, relay, ({ data, context: facts }) =>
    refusalWithContext(
      { trading, config },
      { ...intent, block },
      { data, context: { ...facts, signer: agent.signer } },
    ),
  ).catch(async refusal => {
    // The nonce was used after it was read: by another intent, or by this one, which a lost lane had sent.
    if (!(refusal instanceof Refusal && refusal.body.code === 'INVALID_NONCE')) throw refusal
    return receiptOrRefusal(refusal, (await getSigningTerms(trading, agentId)).nonce)
  })
  if (!('logs' in mined)) return mined
  if (kind === 'open') keeper?.wake()
  const positionId = positionIdIn(trading.trading.TradeRouter, mined.logs)
  if (positionId === undefined) throw new Error('The receipt of a mined intent has no intent event')
  return {
    agentId: `${agentId}`,
    positionId: `${positionId}`,
    transactionHash: mined.hash,
    blockNumber: `${mined.blockNumber}`,
    ...deadlineWarnings(deadline, block),
  }
}

/** Throws INVALID_EXIT_RULES, naming rule and bound, for a ladder whose shape no contract accepts. */
export function assertLadderShape(exits: readonly ExitRule[]): void {
  const shape = findShapeProblem(exits)
  if (shape) throw refuse('INVALID_EXIT_RULES', { ...shape })
}

/**
 * Returns the refusal of a contract error with what the error itself does not carry: the violated exit bound, and the
 * market hours behind a stale price.
 */
async function refusalWithContext(
  { trading, config }: Pick<Context, 'trading' | 'config'>,
  { agentId, exits, block }: Pick<TradingIntent, 'agentId' | 'exits'> & { block: Block },
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
  if (error?.name !== 'StalePrice') return refusal
  const { asset } = error.facts
  const closedTexts = marketClosedTexts(config, (await symbolsOf(trading, [asset]))(asset), block.timestamp)
  return closedTexts ? refusal.withRemedy(closedTexts.remedy) : refusal
}
