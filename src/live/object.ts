import { DurableObject } from 'cloudflare:workers'
import type { Address } from 'viem'
import { createChain, type TradingChain } from '../chain/chain.ts'
import { symbolsOf } from '../chain/token-symbols.ts'
import { parseConfig } from '../config.ts'
import { Refusal } from '../errors/refusal.ts'
import type { IntentRecord } from '../executor/intent.ts'
import { scopeOf } from '../history/index-key.ts'
import { logEvent } from '../log.ts'
import type { Trade } from '../protocol/trade-events.ts'
import { presentTrade } from '../resources/trade.ts'
import { createEdges, type Edges } from './alerts.ts'
import type { Entry, EventType, Fact, Subject } from './event.ts'
import { readMandates, readNews } from './index-changes.ts'
import { type Log, openLog } from './store.ts'
import { type Audience, createAudience } from './subscribers.ts'

export const HEARTBEAT_MS = 15_000
/** After a failure the index is asked again, whether or not it has more by then. */
const AGAIN_MS = 2_000

/** The index is asked for what was relayed at most this often. */
const HASTE_MS = 300

/** Where a stream begins: after the event of an id, or now. */
export type Opening = { subject: Subject; lastEventId?: string }

/** How many streams are open, and the block to which they were told everything; undefined before the first. */
export type StreamsStatus = { streams: number; block: number | undefined }

type Parts = { chain: TradingChain; scope: string; db: D1Database; edges: Edges }

/**
 * Holds every open stream of a deployment. What it sends is in its log first, in one order for all: trades come from the
 * index, after the transaction that wrote them there; intents are told by the executor's lanes; breaches and stale prices
 * it finds itself. So a client that comes back with an id is sent exactly what came after it.
 */
export abstract class EventStreamsObject extends DurableObject<Env> {
  /** An intent as it is shown; undefined for what no agent has signed. */
  protected abstract readonly present: (record: IntentRecord) => Record<string, unknown> | undefined
  /** Told of the agents whose positions or risk have changed. */
  protected abstract readonly onChange: (agentIds: number[]) => void
  readonly #log: Log
  readonly #audience: Audience
  readonly #vaults = new Map<number, Address>()
  /** Who has traded and what has a new price since risks were looked at. */
  readonly #traded = new Set<number>()
  readonly #priced = new Set<Address>()
  #parts: Parts | undefined
  #advance: Promise<void> | undefined
  #isWanted = false
  #isHastening = false
  #heart: ReturnType<typeof setInterval> | undefined

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#log = openLog(ctx.storage.sql)
    this.#audience = createAudience(this.#log)
  }

  /** Opens a stream; answers a refusal's code in its place where there is none to open. */
  override async fetch(request: Request): Promise<Response> {
    const { subject, lastEventId } = (await request.json()) as Opening
    if (this.#audience.isFull()) return refusal('TOO_MANY_STREAMS')
    const resolve = () => {
      if (this.#log.mark() === undefined) return 'ahead'
      return lastEventId === undefined ? this.#log.tip().seq : this.#log.resolve(lastEventId)
    }
    // A list of trades reads beyond the index: what it names is an event in a moment.
    if (resolve() === 'ahead' && !(await this.#catchUp())) return refusal('HISTORY_UNAVAILABLE')
    const after = resolve()
    if (after === 'ahead' || after === 'forgotten') return refusal('EVENT_ID_UNKNOWN')
    const body = this.#audience.open(subject, after, lastEventId ?? this.#log.tip().id)
    this.#heart ??= setInterval(() => this.#beat(), HEARTBEAT_MS)
    return new Response(body)
  }

  status(): StreamsStatus {
    return { streams: this.#audience.size(), block: this.#log.mark()?.block }
  }

  /** Takes over what the index has and the log has not; answers whether the log has begun. */
  async advance(): Promise<boolean> {
    this.#isWanted = true
    this.#advance ??= (async () => {
      try {
        while (this.#isWanted) {
          this.#isWanted = false
          await this.#follow()
        }
      } catch (error) {
        logFailure(error)
        await this.ctx.storage.setAlarm(Date.now() + AGAIN_MS)
      } finally {
        this.#advance = undefined
      }
    })()
    await this.#advance
    return this.#log.mark() !== undefined
  }

  override async alarm(): Promise<void> {
    await this.advance()
  }

  /** Takes what has become of intents, as the executor's lanes tell it. */
  async tell(records: IntentRecord[]): Promise<void> {
    const shown = records.flatMap(record => {
      const data = this.present(record)
      return data ? [{ data, agentId: agentOf(record) }] : []
    })
    await this.#learnVaults(shown.flatMap(({ agentId }) => agentId ?? [])).catch(logFailure)
    if (this.#log.mark() === undefined) return
    const facts = shown.map(({ data, agentId }): Fact => {
      return { type: 'intent', agentId, vault: agentId === undefined ? undefined : this.#vaults.get(agentId), data }
    })
    this.#audience.publish(this.#log.addFacts(facts))
    if (records.some(({ state }) => state === 'mined')) this.ctx.waitUntil(this.#hasten())
  }

  async #follow(): Promise<void> {
    const parts = this.#assemble()
    if (parts === undefined) return
    const { chain, scope, db, edges } = parts
    const traded = this.#traded
    const priced = this.#priced
    for (;;) {
      const news = await readNews(db, scope, this.#log.mark())
      if (news === undefined) return
      if (news.is === 'beginning') {
        this.#log.begin(news.block, news.hash, news.reorg)
        continue
      }
      if (news.is === 'reorgs') {
        edges.forget()
        for (const reorg of news.reorgs) {
          const entry = this.#log.withdraw(reorg)
          this.#audience.publish([entry])
          for (const agentId of withdrawnAgents(entry)) traded.add(agentId)
        }
        continue
      }
      const symbolOf = await symbolsOf(
        chain,
        news.trades.map(({ token }) => token),
      )
      edges.follow(news.trades)
      const facts = news.trades.map(trade => ({ ...factOf(trade, symbolOf(trade.token)), ...placeOf(trade) }))
      this.#audience.publish(
        this.#log.addLogs(facts, news.isWhole ? { block: news.block, hash: news.hash } : undefined),
      )
      for (const { agentId, vault } of facts) {
        traded.add(agentId)
        this.#vaults.set(agentId, vault)
      }
      for (const token of news.prices) priced.add(token)
      if (!news.isWhole) continue
      if (traded.size > 0) this.onChange([...traded])
      const { facts: found, settle } = await edges.look({ traded, priced, timestamp: news.timestamp })
      settle()
      traded.clear()
      priced.clear()
      this.#audience.publish(this.#log.addFacts(found))
      const touched = new Set(found.flatMap(({ agentId }) => agentId ?? []))
      if (touched.size > 0) this.onChange([...touched])
      return
    }
  }

  /** Has the index look at the chain at once; answers whether it could, and there is a log then. */
  async #catchUp(): Promise<boolean> {
    const status = await this.#indexer().catchUp().catch(logFailure)
    return (await this.advance()) && status !== undefined
  }

  /** The index looks at the chain every second; what was relayed is told sooner. */
  async #hasten() {
    if (this.#isHastening) return
    this.#isHastening = true
    await this.#catchUp()
    await scheduler.wait(HASTE_MS)
    this.#isHastening = false
  }

  #beat() {
    if (this.#audience.size() === 0) {
      clearInterval(this.#heart)
      this.#heart = undefined
      return
    }
    this.#audience.beat()
    this.ctx.waitUntil(this.advance()) // prices also grow stale while nothing happens
  }

  /** An agent's vault is that of its registration for good. */
  async #learnVaults(agentIds: number[]) {
    const unknown = [...new Set(agentIds)].filter(id => !this.#vaults.has(id))
    const db = this.#assemble()?.db
    if (unknown.length === 0 || db === undefined) return
    for (const { agentId, vault } of await readMandates(db, unknown)) this.#vaults.set(agentId, vault)
  }

  #indexer() {
    return this.env.HISTORY_INDEXER.getByName(this.ctx.id.name ?? '')
  }

  #assemble(): Parts | undefined {
    if (this.#parts) return this.#parts
    const config = parseConfig({ ...this.env })
    const { HISTORY: db } = this.env
    if (config.chain === undefined || config.trading === undefined || db === undefined) return undefined
    const chain = createChain(config.chain, config.trading) as TradingChain
    this.#parts = { chain, scope: scopeOf(chain), db, edges: createEdges({ chain, db, log: this.#log }) }
    return this.#parts
  }
}

/** Why a stream cannot be opened. */
export type OpeningRefusal = 'EVENT_ID_UNKNOWN' | 'TOO_MANY_STREAMS' | 'HISTORY_UNAVAILABLE'

const refusal = (code: OpeningRefusal) => Response.json({ code }, { status: 400 })

function logFailure(error: unknown): undefined {
  const name = error instanceof Error ? error.name : typeof error
  logEvent('event streams failure', { cause: error instanceof Refusal ? error.body.code : name })
}

function agentOf({ group }: IntentRecord): number | undefined {
  const [, agentId] = /^agent:(\d{1,15})$/.exec(group) ?? []
  return agentId === undefined ? undefined : Number(agentId)
}

const eventTypes: Partial<Record<Trade['type'], EventType>> = { ExitExecuted: 'exit', ExitLadderUpdated: 'ladder' }

function factOf(trade: Trade, symbol: string) {
  const { type, agentId, vault } = trade
  const data = { agentId: `${agentId}`, ...presentTrade(trade, symbol) }
  return { type: eventTypes[type] ?? ('trade' as const), agentId: Number(agentId), vault, data }
}

const placeOf = ({ blockNumber, logIndex }: Trade) => ({ block: Number(blockNumber), logIndex })

const withdrawnAgents = ({ data }: Entry) =>
  (JSON.parse(data) as { withdrawn: { agentId: number }[] }).withdrawn.map(({ agentId }) => agentId)
