import type { Hex } from 'viem'
import type { Block } from '../chain/chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { getIntender, getTerms, type Intender } from '../chain/trading-terms.ts'
import { verifySignature } from '../chain/verify-signature.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/intent.ts'
import { decodeRevert, type RevertContext, refusalOfRevert } from '../protocol/contract-errors.ts'
import { boundsProblem, shapeProblem } from '../protocol/exit-ladder.ts'
import { positionIdIn } from '../protocol/receipt-events.ts'
import { digestOf, type ExitRule, type Message, type PrimaryType } from '../protocol/typed-data.ts'
import { closureOf } from './market-closed.ts'

const DAY_SECONDS = 86_400n
// Seconds have ten digits for two centuries; thirteen and fourteen are a clock that counts milliseconds.
const MILLISECONDS_FROM = 1_000_000_000_000n
const MILLISECONDS_TO = 100_000_000_000_000n

/** The part of a signed message that every relayed operation checks the same way. */
export type Signed = { deadline: bigint; nonce: bigint; signature: Hex }

/** Refuses a deadline that has passed at a block or that counts milliseconds. */
export function deadlineRefusal(deadline: bigint, block: Block): Refusal | undefined {
  const facts = { given: deadline, serverTime: block.timestamp }
  if (deadline >= MILLISECONDS_FROM && deadline < MILLISECONDS_TO) return refuse('DEADLINE_IN_MILLISECONDS', facts)
  return deadline < block.timestamp ? refuse('EXPIRED_DEADLINE', facts) : undefined
}

/** What the caller should know about a deadline that is accepted. */
export const deadlineWarnings = (deadline: bigint, { timestamp }: Block) =>
  deadline > timestamp + DAY_SECONDS
    ? {
        warnings: [
          'The deadline is more than 24 hours ahead: until then only the nonce bounds the life of this intent.',
        ],
      }
    : {}

/** Refuses a ladder whose shape no contract would take, naming the rule and the bound. */
export function assertLadderShape(exits: readonly ExitRule[]): void {
  const shape = shapeProblem(exits)
  if (shape) throw refuse('INVALID_EXIT_RULES', { ...shape })
}

type Intent = Signed & {
  agentId: bigint
  kind: RelayRequest['kind']
  primaryType: PrimaryType
  /** The signed message, from what the chain says of the agent. */
  message: (intender: Intender) => Message
  /** The router call that carries the message. */
  data: (intender: Intender) => Hex
  exits?: readonly ExitRule[]
}

/**
 * Verifies a signed intent and relays it: one read, the signature, then simulate and send. The identical body again
 * gives the same answer and is never executed twice, also when its nonce has been used by itself meanwhile.
 * Answers agent, position (from the receipt's event) and transaction; throws the refusal otherwise.
 */
export async function relayIntent({ trading, executor, keeper, config }: Context, intent: Intent) {
  const { agentId, nonce, deadline, signature, kind, primaryType } = intent
  const intender = await getIntender(trading, agentId)
  const { agent, domain, block } = intender
  const message = intent.message(intender)
  const digest = digestOf(domain, primaryType, message)
  await verifySignature(trading, agent.signer, { domain, primaryType, message, exits: intent.exits }, signature)

  const relay: RelayRequest = {
    digest,
    kind,
    group: `agent:${agentId}`,
    groupNonce: `${nonce}`,
    deadline,
    call: { to: trading.trading.TradeRouter, data: intent.data(intender) },
  }
  const late =
    deadlineRefusal(deadline, block) ??
    (nonce === intender.nonce ? undefined : refuse('INVALID_NONCE', { given: nonce, expected: intender.nonce }))
  if (late && !(await isKnown(executor, relay))) throw late

  const mined = await mine(executor, relay, refusal => explain({ trading, config }, { ...intent, block }, refusal))
  if (kind === 'open') keeper?.wake()
  const positionId = positionIdIn(trading.trading.TradeRouter, mined.logs)
  if (positionId === undefined) throw new Error('A mined intent has no intent event')
  return {
    agentId: `${agentId}`,
    positionId: `${positionId}`,
    transactionHash: mined.hash,
    blockNumber: `${mined.blockNumber}`,
    ...deadlineWarnings(deadline, block),
  }
}

/** Revert data, and what is known of the call beside it. */
type Revert = { data: Hex | undefined; context: RevertContext }

/** Whether the executor has taken this very message before and may know its outcome. */
export async function isKnown(executor: Executor, { group, digest }: RelayRequest): Promise<boolean> {
  const record = await executor.find(group, digest)
  return record !== undefined && record.state !== 'rejected'
}

/** Relays and answers the mined transaction; throws the refusal of every other outcome. */
export async function mine(
  executor: Executor,
  relay: RelayRequest,
  onRefused: (revert: Revert) => Promise<Refusal> = async ({ data, context }) => refusalOfRevert(data, context),
): Promise<Extract<RelayOutcome, { state: 'mined' }>> {
  const { digest, groupNonce: nonce, group } = relay
  const outcome = await executor.relay(relay)
  switch (outcome.state) {
    case 'mined':
      return outcome
    case 'rejected':
    case 'reverted': {
      const context = outcome.state === 'reverted' ? { transactionHash: outcome.hash } : {}
      throw decodeRevert(outcome.data) === undefined
        ? refusalOf(outcome)
        : await onRefused({ data: outcome.data, context })
    }
    case 'conflict':
      throw refuse('NONCE_IN_FLIGHT', { agentId: group.replace(/^\w+:/, ''), nonce, digest: outcome.digest })
    case 'unknown':
      throw refuse('SUBMISSION_UNKNOWN', { digest, transactionHash: outcome.hash })
    case 'unsent':
      throw refuse('SUBMISSION_FAILED', { digest })
    case 'busy':
      throw refuse(
        outcome.why === 'reverts' ? 'TOO_MANY_REVERTS' : 'EXECUTOR_BUSY',
        { digest },
        { retryAfterSeconds: outcome.retryAfterSeconds },
      )
    case 'paused':
      throw refuse('EXECUTOR_PAUSED', { digest }, { retryAfterSeconds: outcome.retryAfterSeconds })
    case 'unfunded':
      throw refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
  }
}

/** The refusal of an intent of which nothing was executed: the contracts' own where the revert data say it. */
export function refusalOf(
  outcome: { state: 'rejected'; data?: Hex; message?: string } | { state: 'reverted'; hash: Hex; data?: Hex },
): Refusal {
  const { state, data } = outcome
  if (state === 'reverted')
    return decodeRevert(data) === undefined
      ? refuse('SUBMISSION_REVERTED', {
          transactionHash: outcome.hash,
          problem: 'the reason could not be replayed',
        })
      : refusalOfRevert(data, { transactionHash: outcome.hash })
  return data === undefined && outcome.message !== undefined
    ? refuse('INTENT_REFUSED', { problem: outcome.message })
    : refusalOfRevert(data)
}

/**
 * The refusal of the contracts; for exit bounds with the rule and the bound, for a stale price with the hours of its market,
 * which the contract errors do not name.
 */
async function explain(
  { trading, config }: Pick<Context, 'trading' | 'config'>,
  { agentId, exits, block }: Pick<Intent, 'agentId' | 'exits'> & { block: Block },
  { data, context }: Revert,
): Promise<Refusal> {
  const error = decodeRevert(data)
  const refusal = refusalOfRevert(data, context)
  if (error?.name === 'ExitRulesOutOfBounds' && exits !== undefined) {
    const { terms } = await getTerms(trading, agentId)
    return refusal.withDetails({ ...boundsProblem(exits, terms.trackConfig) })
  }
  if (error?.name !== 'StalePrice') return refusal
  const [token] = error.args
  const closure = closureOf(config, (await symbolsOf(trading, [token]))(token), block.timestamp)
  return closure ? refusal.withRemedy(closure.remedy) : refusal
}
