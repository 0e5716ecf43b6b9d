import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Address } from 'viem'
import { KEPT_BLOCKS } from '../devnet/anvil.ts'
import type { Block, EmbeddedMarket } from './play-market.ts'

// The market waits for the agents, and they take turns, so that the same programs meet the same market every time. An
// agent trades while it is its turn, then asks for a later time. Once all have asked, the market moves to the earliest
// of these times, and the agents that asked for it have their turns again.

/**
 * An agent under test. `begin` starts its program and resolves when it ends; `isAwaited` tells whether the market waits
 * for it.
 */
export type Seat = { agentId: string; begin: (isAwaited: () => boolean) => Promise<void> }

export type Stage = {
  /** Where the service sends the agents' calls of `POST /rehearsal/advance`. */
  url: string
  /** Plays the tape to its end, with agents that take turns. */
  play(seats: readonly Seat[]): Promise<void>
  /** Plays the tape to its end in scaled real time: the programs run at once, and nobody is waited for. */
  playAt(speed: number, seats: readonly Seat[]): Promise<void>
  /**
   * Plays a market in real time until every program has ended: they run at once, and a call waits for the time or the
   * prices.
   */
  playLive(seats: readonly Seat[]): Promise<void>
  close(): Promise<void>
}

/** An agent's call: without an id, that of the only agent; without a time, for the next bar. */
type Ask = { agentId: string | undefined; until: number | undefined }

/** An agent trades in its turn, which ends when it asks for a later time or its program ends. */
type Turn = {
  agentId: string
  state: 'trading' | 'waiting' | 'ended'
  /** The time that it has asked for, and when; undefined for the next bar. */
  until: number | undefined
  askedAt: number
  /** Release the agent's calls, with the head if it is known. There are several if it has repeated one. */
  waiting: ((head: Block | undefined) => void)[]
  end(): void
}

/** How long a call waits for the next prices of a live market: HTTP clients give up after minutes. */
const MAX_QUIET_SECONDS = 60

/** How many blocks the index may be behind: far fewer than the node keeps the logs of. */
const MAX_UNREAD_BLOCKS = KEPT_BLOCKS / 8

/** Opens the stage on which agents trade at a service, whose keeper fires exits after each step of the market. */
export async function openStage(market: EmbeddedMarket, serviceUrl: string): Promise<Stage> {
  const turns = new Map<string, Turn>()
  let mode: 'turns' | 'speed' | 'live' = 'turns'

  /** Whether the keeper may have something to do at the present prices. */
  let wakes: (now: Posted) => boolean = () => true
  /** Steps since the service has read the chain. */
  let unread = 0
  /** The head while agents take turns, unless somebody may have made a block since it was read. */
  let head: Block | undefined

  async function playTo(time: number): Promise<void> {
    do {
      const { number } = head ?? (await market.head())
      const isUndisturbed = mode === 'turns' && number === market.now().head.number
      await market.playStep({ until: time, isUndisturbed })
      const now = market.now()
      // On a recorded day the clock may have been there already, without a block.
      if (mode === 'turns' && now.head.number > number) head = now.head
      if (!isUndisturbed) wakes = () => true
      if (!now.keeperActs || (!wakes(now) && ++unread < MAX_UNREAD_BLOCKS)) continue
      wakes = await fireExits(serviceUrl)
      unread = 0
      head = undefined
    } while (!market.now().isOver && (market.now().time < time || !market.now().endsBar))
  }

  async function respond({ agentId, until }: Ask) {
    if (mode === 'speed') throw new AskRefused(400, 'this market moves by itself (--speed); wait instead')
    if (agentId === undefined && turns.size > 1)
      throw new AskRefused(400, 'agentId is required, because several agents are rehearsed')
    const turn = turns.get(agentId ?? [...turns.keys()][0] ?? '')
    if (turn === undefined) throw new AskRefused(404, 'no such agent is rehearsed')
    const asked = await market.head()
    let block = asked
    const { time, isOver, step } = market.now()
    if (turn.state === 'waiting' || !(isOver || (until !== undefined && until <= time))) {
      turn.until = until
      turn.askedAt = time
      if (mode === 'turns' && turn.state === 'trading') head = asked
      turn.state = 'waiting'
      const released = new Promise<Block | undefined>(resolve => turn.waiting.push(resolve))
      turn.end()
      block = (await released) ?? (await market.head())
    }
    const { step: reached, ...now } = market.now()
    // Each step is one block. Trades have others.
    const tradesAfter = block.number - asked.number > reached - step ? asked.number : null
    return { ...now, agentId: turn.agentId, block, tradesAfter }
  }

  /** Lets an agent trade until it asks for a later time or its program ends. */
  async function takeTurn(turn: Turn, begin?: Seat['begin']): Promise<void> {
    const ended = Promise.withResolvers<void>()
    turn.end = ended.resolve
    begin?.(() => turn.state === 'trading').then(() => {
      turn.state = 'ended'
      turn.end()
    }, ended.reject)
    release(turn)
    await ended.promise
  }

  function release(turn: Turn): void {
    turn.state = 'trading'
    for (const respondNow of turn.waiting.splice(0)) respondNow(head)
    head = undefined // the agent may trade
  }

  const seatAll = (seats: readonly Seat[]) => {
    for (const { agentId } of seats)
      turns.set(agentId, { agentId, state: 'trading', until: undefined, askedAt: 0, waiting: [], end: () => {} })
    return [...turns.values()]
  }

  const server = createServer(async (request, response) => {
    const reply = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    try {
      reply(200, await respond(await readJson<Ask>(request)))
    } catch (error) {
      reply(error instanceof AskRefused ? error.status : 500, { problem: `${(error as Error).message}` })
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async play(seats) {
      const inOrder = seatAll(seats)
      for (const [index, turn] of inOrder.entries()) await takeTurn(turn, seats[index]?.begin)
      while (!market.now().isOver) {
        const waiting = inOrder.filter(({ state }) => state === 'waiting')
        const next = market.nextBar()
        await playTo(Math.min(...waiting.map(({ until = next }) => until)))
        const { time, isOver } = market.now()
        for (const turn of waiting) if (isOver || (turn.until ?? next) <= time) await takeTurn(turn)
      }
    },
    async playAt(speed, seats) {
      mode = 'speed'
      let hasFailed = false
      const ends = Promise.all(seats.map(({ begin }) => begin(() => false)))
      ends.catch(() => {
        hasFailed = true
      })
      while (!market.now().isOver && !hasFailed) {
        const before = market.now().time
        const startedAt = performance.now()
        await playTo(market.nextBar())
        const pauseMs = ((market.now().time - before) * 1_000) / speed
        await sleep(Math.max(0, pauseMs - (performance.now() - startedAt)))
      }
      await ends
    },
    async playLive(seats) {
      mode = 'live'
      const all = seatAll(seats)
      let running = seats.length
      const ends = Promise.allSettled(seats.map(({ begin }) => begin(() => false).finally(() => running--)))
      while (running > 0) {
        await market.playStep()
        await fireExits(serviceUrl)
        const { time, endsBar, isOver } = market.now()
        const isDue = ({ until, askedAt }: Turn) =>
          until === undefined ? endsBar || time >= askedAt + MAX_QUIET_SECONDS : until <= time
        for (const turn of all) if (turn.state === 'waiting' && (isOver || isDue(turn))) release(turn)
      }
      for (const end of await ends) if (end.status === 'rejected') throw end.reason
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The prices of a step, USD with 8 decimals by token, and their block. */
type Posted = { posted: ReadonlyMap<Address, bigint>; head: Block }

type Waking = { prices: { token: Address; below: string | null; above: string | null }[]; time: string } | null

/**
 * Makes the keeper of the service fire the exits and execute the orders that are due. Returns whether others may be due
 * at a later step, until somebody trades.
 */
async function fireExits(serviceUrl: string): Promise<(now: Posted) => boolean> {
  const response = await fetch(`${serviceUrl}/rehearsal/exits`, { method: 'POST' })
  const body = await response.text()
  if (!response.ok) throw new Error(`The keeper of the service failed: ${body}`)
  const { waking }: { waking: Waking } = JSON.parse(body)
  if (waking === null) return () => true
  return ({ posted, head }) =>
    head.timestamp >= Number(waking.time) ||
    waking.prices.some(({ token, below, above }) => {
      const price = posted.get(token)
      return (
        price === undefined || (below !== null && price <= BigInt(below)) || (above !== null && price >= BigInt(above))
      )
    })
}

/** A call that the caller has to change. */
class AskRefused extends Error {
  readonly status: 400 | 404

  constructor(status: 400 | 404, problem: string) {
    super(problem)
    this.status = status
  }
}

async function readJson<Body>(request: IncomingMessage): Promise<Body> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return JSON.parse(text) as Body
}
