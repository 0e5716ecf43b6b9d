import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EmbeddedMarket } from './play-market.ts'

// The market waits for the agents, and they take turns, so that the same programs meet the same market every time. An agent
// trades while it is its turn, then asks for a later time. Once all have asked, the market moves to the earliest of these
// times, and the agents that asked for it have their turns again.

/** What the service responds with to `POST /rehearsal/advance`; after `settle` it lets the keeper work, and asks again. */
export type Moment = { time: number; isOver: boolean; settle: boolean }

/** What the service asks: its own agent id is 0. Without an id it is the only agent's. */
type Ask = { agentId: string | undefined; until: number | undefined }

/** An agent under test. `begin` starts its program and resolves when it ends. */
export type Seat = { agentId: string; begin: () => Promise<void> }

export type Stage = {
  /** Where the service asks. */
  url: string
  /** Plays the tape to its end, with agents that take turns. */
  play(serviceUrl: string, seats: readonly Seat[]): Promise<void>
  /** Plays the tape to its end in scaled real time: the programs run at once, and nobody is waited for. */
  playAt(speed: number, serviceUrl: string, seats: readonly Seat[]): Promise<void>
  close(): Promise<void>
}

const SERVICE = '0'

/** A seat that has its turn: `ask` ends it, and so does the end of its program. */
type Turn = {
  state: 'acting' | 'waiting' | 'ended'
  until: number
  held: ((moment: Moment) => void)[]
  over: () => void
}

export async function openStage(market: EmbeddedMarket): Promise<Stage> {
  const turns = new Map<string, Turn>()
  let target = 0
  let isOwnPace = false

  const moment = (settle = false): Moment => {
    const { time, isOver } = market.now()
    return { time, isOver, settle }
  }

  /** Plays the service's next step, if there is one before its target. */
  async function step(): Promise<Moment> {
    const { time, endsBar, isOver } = market.now()
    if (isOver || (time >= target && endsBar)) return moment()
    await market.playStep()
    return moment(true)
  }

  function ask({ agentId, until }: Ask): Promise<Moment> | Moment {
    if (agentId === SERVICE) return step()
    if (isOwnPace) throw new AskRefused(400, 'this market moves by itself (--speed); wait instead')
    const names = [...turns.keys()]
    if (agentId === undefined && names.length > 1)
      throw new AskRefused(400, 'agentId is required, because several agents are rehearsed')
    const turn = turns.get(agentId ?? names[0] ?? '')
    if (turn === undefined) throw new AskRefused(404, 'no such agent is rehearsed')
    const { time, isOver } = market.now()
    if (turn.state !== 'waiting' && (isOver || (until !== undefined && until <= time))) return moment()
    turn.until = until ?? time + 1
    turn.state = 'waiting'
    turn.over()
    return new Promise(resolve => turn.held.push(resolve))
  }

  /** Lets a seat act until it asks again or its program ends. */
  async function act(turn: Turn, begin?: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    turn.state = 'acting'
    turn.over = resolve
    if (begin)
      begin().finally(() => {
        turn.state = 'ended'
        turn.over()
      })
    for (const release of turn.held.splice(0)) release(moment())
    await promise
  }

  const server = createServer(async (request, response) => {
    const reply = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    try {
      reply(200, await ask(await readJson<Ask>(request)))
    } catch (error) {
      if (error instanceof AskRefused) reply(error.status, { problem: error.message })
      else reply(500, { problem: `${error}` })
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const seatAll = (seats: readonly Seat[]) => {
    for (const { agentId } of seats) turns.set(agentId, { state: 'acting', until: 0, held: [], over: () => {} })
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async play(serviceUrl, seats) {
      seatAll(seats)
      const inOrder = seats.flatMap(({ agentId, begin }) => {
        const turn = turns.get(agentId)
        return turn ? [{ turn, begin }] : []
      })
      for (const { turn, begin } of inOrder) await act(turn, begin)
      while (!market.now().isOver) {
        const waiting = inOrder.filter(({ turn }) => turn.state === 'waiting')
        target = Math.min(...waiting.map(({ turn }) => turn.until), Number.MAX_SAFE_INTEGER)
        await playToTarget(serviceUrl)
        const { time, isOver } = market.now()
        for (const { turn } of waiting) if (isOver || turn.until <= time) await act(turn)
      }
      // Those whose last turn ended with a question are told that the market is over, until their programs end.
      for (const { turn } of inOrder) while (turn.state === 'waiting') await act(turn)
    },
    async playAt(speed, serviceUrl, seats) {
      isOwnPace = true
      seatAll(seats)
      const ends = Promise.all(seats.map(({ begin }) => begin()))
      while (!market.now().isOver) {
        const before = market.now().time
        target = before + 1
        const startedAt = performance.now()
        await playToTarget(serviceUrl)
        const pauseMs = ((market.now().time - before) * 1_000) / speed
        await sleep(Math.max(0, pauseMs - (performance.now() - startedAt)))
      }
      await ends
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** Makes the service move the market to the target. */
async function playToTarget(serviceUrl: string): Promise<void> {
  const response = await fetch(`${serviceUrl}/rehearsal/advance`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ agentId: SERVICE }),
  })
  if (!response.ok) throw new Error(`The service does not move the market: ${await response.text()}`)
  await response.text()
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
