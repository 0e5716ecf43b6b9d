import { numberToHex } from 'viem'
import type { GasBudgets as Limits } from '../../src/config/config.ts'
import { createGasBudgets, type GasUse } from '../../src/executor/gas-budgets.ts'
import { addressAt, agentOf } from './requesters.ts'
import { randomOf } from './seeded-random.ts'

// A day of a lane's gas budgets on a clock that is moved, so that the day is the same in each run.

const DAY_MINUTES = 1_440
const START_MS = 1_700_000_000_000

/**
 * What a transaction uses. The longest message of an owner is a mandate of 64 tokens; a contract's may burn as much.
 */
const GAS = {
  open: 550_000,
  reduce: 350_000,
  close: 350_000,
  ladder: 120_000,
  stop: 120_000,
  mandate: 1_600_000,
  revert: 1_600_000,
}
const REGISTRATION_GAS = 450_000
/** The limit that a transaction reserves until its block, relative to what it uses. */
const LIMIT = 1.3
/**
 * The minutes at which a crowd uses up what it has: often while it has full budgets, and also before each honest
 * request.
 */
const crowdMinutes = (from: number, to: number) => [
  ...Array.from({ length: 20 }, (_, tick) => from + tick),
  ...Array.from({ length: (to - from) / 20 - 1 }, (_, tick) => from + (tick + 1) * 20),
]

export type CrowdKind = keyof typeof GAS | 'register' | 'failure'
/** Agents that send all they can: what `kinds` says, over and over. */
export type Crowd = { agents: number; isYoung: boolean; kinds: readonly CrowdKind[] }
/** Honest senders, and what each of them asks for in a day, `together` at a time (one by one by default). */
export type Honest = {
  name: string
  senders: number
  isYoung: boolean
  requests: readonly CrowdKind[]
  together?: number
}

export type Sender = { id: number; isYoung: boolean }

/** Returns the gas of a request, and what its transaction reserves until its block. */
export function gasOf(kind: Exclude<CrowdKind, 'failure'>) {
  const gas = kind === 'register' ? REGISTRATION_GAS : GAS[kind]
  return { gas, limit: Math.ceil(gas * LIMIT) }
}

export function useOf({ id, isYoung }: Sender, kind: CrowdKind): GasUse {
  const account = addressAt(id)
  if (kind === 'register') return { kind, by: { as: 'registrant', account } }
  const agent = agentOf(id, { isNew: isYoung })
  if (kind === 'stop' || kind === 'mandate' || kind === 'revert')
    return { kind: 'owner', by: { as: 'owner', agent, account }, protects: kind === 'stop' }
  const by = { as: 'signer', agent, account } as const
  if (kind === 'open' || kind === 'failure' || kind === 'ladder') return { kind: 'open', by }
  return { kind: 'reduce', by, protects: true, closesPosition: kind === 'close' }
}

/**
 * Opens a lane whose transactions are mined at once, except those of a crowd that `send` leaves in flight until `mine`.
 */
function openLane(limits: Limits) {
  let now = START_MS
  let digests = 0
  let used = 0
  /** Only an open position can be closed. */
  const openPositions = new Map<number, number>()
  const inFlight: (() => void)[] = []
  const budgets = createGasBudgets({ recent: () => [], write() {}, prune() {} }, limits, { now: () => now })

  /** Returns the seconds to wait; undefined if the request found room. */
  function send(sender: Sender, kind: CrowdKind, staysInFlight = false): number | undefined {
    const use = useOf(sender, kind)
    const positions = openPositions.get(sender.id) ?? 0
    if (kind === 'close' && positions === 0) return Number.POSITIVE_INFINITY
    const digest = numberToHex(++digests)
    const early = budgets.admit(digest, use)
    if (early) return early.retryAfterSeconds
    if (kind === 'failure') {
      budgets.release(digest)
      return void budgets.chargeFailure(use)
    }
    const { gas, limit } = gasOf(kind)
    const spenders = budgets.reserve(digest, use, limit)
    if (!Array.isArray(spenders)) return spenders.retryAfterSeconds
    if (kind === 'open' || kind === 'close') openPositions.set(sender.id, positions + (kind === 'open' ? 1 : -1))
    const settle = () => {
      budgets.release(digest)
      budgets.charge([{ spenders, gas, isReverted: kind === 'revert' }])
      used += gas
    }
    if (staysInFlight) inFlight.push(settle)
    else settle()
    return undefined
  }

  return {
    send,
    mine() {
      for (const settle of inFlight.splice(0)) settle()
    },
    moveTo(minutes: number) {
      now = START_MS + minutes * 60_000
    },
    used: () => used,
  }
}

/** Sends everything that a crowd may send now. One transaction of each agent and kind stays in flight. */
function spendAll(lane: ReturnType<typeof openLane>, { agents, isYoung, kinds }: Crowd) {
  lane.mine()
  for (let agent = 0; agent < agents; agent++)
    for (const kind of kinds)
      for (let wait = lane.send({ id: agent, isYoung }, kind, true); wait === undefined; )
        wait = lane.send({ id: agent, isYoung }, kind)
}

/**
 * Returns which part of the requests of each kind of honest sender find room, at once or after the wait that the
 * refusal names if that is at most a minute, on a day on which a crowd sends all it can. Requests come at random
 * minutes.
 */
export function successOfDay(limits: Limits, seed: number, crowd: Crowd, honest: readonly Honest[]) {
  const random = randomOf('lane day', seed)
  const lane = openLane(limits)
  let lastId = crowd.agents
  const requests = honest.flatMap(({ name, senders, isYoung, requests, together = 1 }) =>
    Array.from({ length: senders }, () => ({ id: ++lastId, isYoung })).flatMap(sender => {
      const times = requests.map(() => random.next() * DAY_MINUTES).sort((a, b) => a - b)
      return requests.map((kind, index) => ({ name, sender, kind, at: times[index - (index % together)] ?? 0 }))
    }),
  )
  const results = new Map(honest.map(({ name }) => [name, { sent: 0, accepted: 0 }]))
  const events = [
    ...crowdMinutes(0, DAY_MINUTES).map(at => ({ at, request: undefined })),
    ...requests.map(request => ({ at: request.at, request })),
  ]
  for (const { at, request } of events.sort((a, b) => a.at - b.at)) {
    lane.moveTo(at)
    spendAll(lane, crowd)
    const result = request && results.get(request.name)
    if (!result) continue
    result.sent++
    let wait = lane.send(request.sender, request.kind)
    if (wait !== undefined && wait <= 60) {
      lane.moveTo(at + wait / 60)
      spendAll(lane, crowd)
      wait = lane.send(request.sender, request.kind)
    }
    if (wait === undefined) result.accepted++
  }
  return Object.fromEntries([...results].map(([name, { sent, accepted }]) => [name, accepted / sent]))
}

/** Returns the gas that a crowd uses in the first hour after it was registered, with what that cost. */
export function gasOfFirstHour(limits: Limits, crowd: Crowd): number {
  const lane = openLane(limits)
  for (let minute = 0; minute < 60; minute++) {
    lane.moveTo(minute)
    spendAll(lane, crowd)
  }
  return lane.used() + crowd.agents * REGISTRATION_GAS
}

/** Returns the gas that a crowd uses on its second day, without anybody else, with what it cost to register it. */
export function gasOfDay(limits: Limits, crowd: Crowd): number {
  const lane = openLane(limits)
  const spend = (minutes: number) => {
    lane.moveTo(minutes)
    spendAll(lane, crowd)
  }
  for (const minutes of crowdMinutes(0, DAY_MINUTES)) spend(minutes)
  const before = lane.used()
  for (const minutes of crowdMinutes(DAY_MINUTES, 2 * DAY_MINUTES)) spend(minutes)
  return lane.used() - before + crowd.agents * REGISTRATION_GAS
}
