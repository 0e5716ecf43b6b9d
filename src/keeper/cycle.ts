import { type Hex, isAddressEqual, toHex } from 'viem'
import type { Block, TradingChain } from '../chain/client.ts'
import {
  type ExitVerdict,
  executedExits,
  exitCall,
  findExits,
  readWatch,
  simulateExits,
  verdictOf,
  type Watch,
  type WatchedPosition,
} from '../chain/exit-execution.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { refuse } from '../errors/catalogue.ts'
import { Refusal, type RefusalBody } from '../errors/refusal.ts'
import type { Executor } from '../executor/client.ts'
import type { RelayOutcome, RelayRequest } from '../executor/intent.ts'
import { logUnexpected } from '../log.ts'
import { refusalOfRevert } from '../protocol/contract-errors.ts'
import { patience } from '../timeout.ts'
import type { Deferral, Evaluation, ExitOutcome } from './client.ts'
import { judge } from './exit-decision.ts'
import type { Book, Entry, Sending } from './store.ts'

/** Exits of one transaction: together they stay below the gas ceiling of the lane. */
const BATCH = 24
const DEADLINE_SECONDS = 60n
/** How long a round waits for its transactions; what takes longer is settled whenever it comes. */
const PATIENCE_MS = 3_000
const DEFERRED_MS = 5_000
const LONGEST_BACKOFF_SECONDS = 60
/** Events of blocks that were looked at before may have moved by this many. */
const RECENT_REORG = 8n
/** A chain whose newest block is this much lower than before is another chain. */
const LONGEST_REORG = 100n

export type Rounds = ReturnType<typeof createRounds>

/**
 * The keeper's work: one look at every open position, and the exits that are due. What is sent is in the book before it
 * leaves, so a round that is cut short is taken up by the next one.
 */
export function createRounds({
  chain,
  executor,
  book,
  respectSessions,
}: {
  chain: TradingChain
  executor: Executor
  book: Book
  respectSessions: boolean
}) {
  /** Digests whose outcome somebody in this life of the object waits for. */
  const flying = new Set<Hex>()

  /** Looks once, fires what is due, and waits a while for what became of it. Throws CHAIN_UNREACHABLE. */
  async function look(): Promise<void> {
    const now = Date.now()
    await Promise.all(book.sending().map(sending => takeUp(sending).catch(logUnexpected)))
    let watch = await readAll(now)
    const last = book.look()
    if (last && watch.block.number + LONGEST_REORG < BigInt(last.blockNumber)) {
      book.clear()
      watch = await readAll(now)
    }
    const symbol = await symbolsOf(chain, respectSessions ? watch.positions.map(({ token }) => token) : [])
    const { due, unclaimed } = judgeAll(watch, symbol, now)
    const batches = Array.from({ length: Math.ceil(due.length / BATCH) }, (_, index) =>
      due.slice(BATCH * index, BATCH * (index + 1)),
    )
    const since = BigInt(last?.blockNumber ?? watch.block.number)
    const exits = Promise.all([credit(unclaimed, watch, since), ...batches.map(batch => exit(batch, watch))])
    await patience(exits, Date.now() + PATIENCE_MS, () => undefined)
  }

  const readAll = (now: number) =>
    readWatch(
      chain,
      book.watched(now).map(({ id }) => id),
      book.cursor(),
    )

  /** Writes down what each position's exits wait for; answers the positions that are due, and those whose rules somebody has fired. */
  function judgeAll(watch: Watch, symbol: (token: `0x${string}`) => string, now: number) {
    const entries = new Map(book.watched(now).map(entry => [entry.id, entry]))
    const sending = new Set(book.sending().flatMap(({ ids }) => ids))
    const at = `${watch.block.timestamp}`
    const due: WatchedPosition[] = []
    const unclaimed: WatchedPosition[] = []
    const prices: Record<string, string> = {}
    const vanished = new Set(entries.keys())
    for (const position of watch.positions) {
      const { positionId: id, token } = position
      vanished.delete(id)
      const entry = entries.get(id)
      if (entry && position.nextRuleIndex > entry.fired && !sending.has(id)) unclaimed.push(position)
      if (position.status !== 0) {
        if (entry?.closedAt === null) book.put(closed(entry, now))
        continue
      }
      const open = entry?.closedAt === null && !isUndone(entry, position) ? entry : newEntry(position)
      const market = watch.marketOf(position)
      prices[token] = `${market.quote.price}`
      const judgement = judge(position, market, { symbol: symbol(token), at: watch.block.timestamp, respectSessions })
      const isTriedInVain = open.triedRound === `${market.quote.roundId}`
      if (judgement === 'due' && !sending.has(id) && open.nextTryAt <= now && !isTriedInVain) due.push(position)
      const judged = judgement === 'due' ? awaited(open, now) : waiting(open, judgement, at)
      if (entry === undefined || judged !== entry) book.put(judged)
    }
    for (const id of vanished) {
      const entry = entries.get(id)
      if (entry?.closedAt === null) book.put(closed(entry, now))
    }
    book.advance(watch.positionCount)
    book.saw({ blockNumber: `${watch.block.number}`, at, prices })
    book.prune(now)
    return { due, unclaimed }
  }

  /** Finds out who has fired the rules that nobody here knows of, with one request; throws nothing. */
  async function credit(positions: readonly WatchedPosition[], watch: Watch, since: bigint): Promise<void> {
    if (positions.length === 0) return
    const positionIds = positions.map(({ positionId }) => positionId)
    const { number: toBlock, timestamp } = watch.block
    const fromBlock = since > RECENT_REORG ? since - RECENT_REORG : 0n
    const exits = await findExits(chain, { positionIds, fromBlock, toBlock }).catch(() => [])
    for (const position of positions) {
      const { positionId: id, nextRuleIndex: fired } = position
      const entry = book.entry(id)
      if (entry === undefined || entry.fired >= fired) continue // its own transaction was heard of meanwhile
      const ruleIndex = fired - 1
      const exit = exits.findLast(exit => exit.positionId === id && exit.ruleIndex === ruleIndex)
      const executed: ExitOutcome = {
        is: 'executed',
        firedBy: exit && isAddressEqual(exit.keeper, executor.address) ? 'keeper' : 'others',
        ...{ at: `${timestamp}`, ruleIndex },
        ...(exit && { transactionHash: exit.transactionHash, usdcOut: `${exit.usdcOut}` }),
      }
      const evaluation = evaluationOf(watch.block, watch.marketOf(position).quote.price)
      book.put({ ...entry, ...calm, fired, evaluation, outcome: executed })
    }
  }

  /** Asks the router which of the exits it would execute, and sends those. */
  async function exit(positions: WatchedPosition[], watch: Watch): Promise<void> {
    const { takesBatches, block } = watch
    const ids = positions.map(({ positionId }) => positionId)
    const verdicts = await simulateExits(chain, ids, takesBatches).catch((error: unknown) => {
      if (positions.length > 1) return undefined
      const [entry] = ids.map(book.entry)
      if (entry) book.put(failed(entry, (error instanceof Refusal ? error : refuse('INTERNAL')).body, block.timestamp))
      return []
    })
    if (verdicts === undefined) {
      // One exit that the node cannot even run must not hold up the others.
      const half = Math.ceil(positions.length / 2)
      await Promise.all([exit(positions.slice(0, half), watch), exit(positions.slice(half), watch)])
      return
    }
    const passing = positions.filter((position, index) => {
      const verdict = verdicts[index]
      if (verdict?.is === 'executed') return true
      if (verdict) learn(position.positionId, verdict, block.timestamp, watch.marketOf(position).quote.roundId)
      return false
    })
    const batches = takesBatches && passing.length > 0 ? [passing] : passing.map(position => [position])
    await Promise.all(
      batches.map(batch =>
        send({
          digest: toHex(crypto.getRandomValues(new Uint8Array(32))),
          ids: batch.map(({ positionId }) => positionId),
          deadline: block.timestamp + DEADLINE_SECONDS,
          takesBatches,
          evaluation: batch.map(position => evaluationOf(block, watch.marketOf(position).quote.price)),
        }),
      ),
    )
  }

  async function send(sending: Sending): Promise<void> {
    book.send(sending)
    flying.add(sending.digest)
    try {
      settle(sending, await executor.relay(relayOf(sending)))
    } finally {
      flying.delete(sending.digest)
    }
  }

  /** Finds out about a transaction that an earlier life of the object, or an earlier round, did not hear the end of. */
  async function takeUp(sending: Sending): Promise<void> {
    const { digest } = sending
    if (flying.has(digest)) return
    const record = await executor.find(groupOf(sending), digest)
    if (record === undefined) return book.settle(digest) // the lane never had it: this look judges anew
    if (record.state === 'rejected' || record.state === 'reverted') {
      const { revertData: data } = record
      return settle(sending, { state: 'rejected', ...(data !== undefined && { data }) })
    }
    if (record.state === 'mined' || record.state === 'final') settle(sending, await executor.relay(relayOf(sending)))
  }

  function settle(sending: Sending, outcome: RelayOutcome) {
    if (outcome.state === 'unknown') return
    book.settle(sending.digest)
    const exits = outcome.state === 'mined' ? executedExits(chain, outcome.logs) : undefined
    for (const [index, id] of sending.ids.entries()) {
      const entry = book.entry(id)
      if (entry === undefined) continue
      const evaluation = sending.evaluation[index]
      const at = evaluation?.at ?? '0'
      const done = exits?.get(id)
      if (outcome.state === 'mined' && done) {
        const { ruleIndex, usdcOut } = done
        const facts = { at, transactionHash: outcome.hash, usdcOut: `${usdcOut}`, ruleIndex }
        const executed: ExitOutcome = { is: 'executed', firedBy: 'keeper', ...facts }
        book.put({ ...entry, ...calm, fired: ruleIndex + 1, evaluation, outcome: executed })
      } else if (outcome.state === 'reverted' || (outcome.state === 'rejected' && outcome.data !== undefined))
        learn(id, verdictOf(outcome.data), BigInt(at))
      else book.put(failed(entry, refusalOfOutcome(outcome.state, sending.digest).body, BigInt(at)))
    }
  }

  /** Writes down why the router would not exit a position. */
  function learn(id: bigint, { is, data }: ExitVerdict, at: bigint, roundId?: bigint) {
    const entry = book.entry(id)
    if (entry === undefined) return
    const retry = { ...entry, nextTryAt: Date.now() + DEFERRED_MS }
    if (is === 'notDue') book.put({ ...entry, ...(roundId !== undefined && { triedRound: `${roundId}` }) })
    if (is === 'stalePrice') book.put({ ...retry, outcome: deferred(entry, 'priceStale', `${at}`) })
    if (is === 'paused') book.put({ ...retry, outcome: deferred(entry, 'tradingPaused', `${at}`) })
    if (is === 'failed') book.put(failed(entry, refusalOfRevert(data).body, at))
  }

  const relayOf = (sending: Sending): RelayRequest => ({
    digest: sending.digest,
    kind: 'exit',
    group: groupOf(sending),
    groupNonce: sending.digest,
    deadline: sending.deadline,
    call: exitCall(chain, sending.ids, sending.takesBatches),
  })

  return { look, lanes: executor.status }
}

/** Batches do not wait for each other, so each is a group of its own. */
const groupOf = ({ ids: [first] }: Sending) => `exit:${first}`

function refusalOfOutcome(state: Exclude<RelayOutcome['state'], 'unknown' | 'reverted'>, digest: Hex): Refusal {
  switch (state) {
    case 'mined':
      return refuse('INTENT_REFUSED', { problem: 'the transaction was mined without this exit' })
    case 'rejected':
      return refuse('INTENT_REFUSED', { problem: 'the transaction was not sent' })
    case 'conflict':
    case 'unsent':
      return refuse('SUBMISSION_FAILED', { digest })
    case 'busy':
      return refuse('EXECUTOR_BUSY', { digest })
    case 'unfunded':
      return refuse('EXECUTOR_OUT_OF_FUNDS', { digest })
    case 'paused':
      return refuse('EXECUTOR_PAUSED', { digest })
  }
}

const calm = { failures: 0, nextTryAt: 0, triedRound: null }

const newEntry = ({ positionId: id, token, nextRuleIndex: fired }: WatchedPosition): Entry => ({
  ...{ id, token, fired, closedAt: null, ...calm },
  evaluation: undefined,
  outcome: undefined,
})

/** Whether the chain has lost the exit that others had fired. */
const isUndone = ({ fired, outcome }: Entry, { nextRuleIndex }: WatchedPosition) =>
  outcome?.is === 'executed' && outcome.firedBy === 'others' && nextRuleIndex < fired

/** Of a position that has closed only the exit is worth telling. */
const closed = (entry: Entry, now: number): Entry => ({
  ...entry,
  closedAt: now,
  outcome: entry.outcome?.is === 'executed' ? entry.outcome : undefined,
})

/** An entry whose exit is due: what it waited for is over, unless the contracts have just said otherwise. */
const awaited = (entry: Entry, now: number): Entry =>
  entry.outcome?.is === 'deferred' && entry.nextTryAt <= now ? { ...entry, outcome: undefined } : entry

/** An entry whose position waits; the very entry where that is nothing new. An executed exit is told until there is more to say. */
function waiting(entry: Entry, judgement: 'notReached' | Deferral, at: string): Entry {
  if (judgement !== 'notReached') {
    const outcome = deferred(entry, judgement, at)
    return outcome === entry.outcome ? entry : { ...entry, ...calm, outcome }
  }
  const isCalm = entry.outcome === undefined || entry.outcome.is === 'executed'
  return isCalm && entry.failures === 0 && entry.triedRound === null
    ? entry
    : { ...entry, ...calm, outcome: isCalm ? entry.outcome : undefined }
}

const deferred = ({ outcome }: Entry, reason: Deferral, at: string): ExitOutcome =>
  outcome?.is === 'deferred' && outcome.reason === reason ? outcome : { is: 'deferred', at, reason }

function failed(entry: Entry, { code, error }: RefusalBody, at: bigint): Entry {
  const failures = entry.failures + 1
  const seconds = Math.min(2 ** failures, LONGEST_BACKOFF_SECONDS)
  const nextTryAt = `${at + BigInt(seconds)}`
  return {
    ...{ ...entry, failures, nextTryAt: Date.now() + seconds * 1000 },
    outcome: { is: 'failed', at: `${at}`, code, message: error, nextTryAt },
  }
}

const evaluationOf = ({ number, timestamp }: Block, price: bigint): Evaluation => ({
  blockNumber: `${number}`,
  price: `${price}`,
  at: `${timestamp}`,
})
