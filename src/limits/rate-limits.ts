import { sleep } from '../concurrency.ts'
import type { RequestBudgets } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { clientNetworksOf, NETWORK_SHARES } from '../requests/client-address.ts'
import { type BucketLevel, type BucketSize, secondsToDrain, usedAt } from './bucket.ts'
import { PRICES, type RequestKind } from './prices.ts'
import { createTurns, type Leave } from './turns.ts'
import { createVerifiedNetworks } from './verified-networks.ts'

/** The rate-limiting bindings of wrangler.toml, which count across the isolates of a location. */
export const rateLimitBindings = { address: 'ADDRESS_RATE_LIMIT', account: 'ACCOUNT_RATE_LIMIT' } as const
/** How many units a call of a binding takes. An isolate takes them in advance, so few requests need a call. */
export const UNITS_PER_BINDING_CALL = 20

type Binding = { limit(options: { key: string }): Promise<{ success: boolean }> }
/** The bindings by name. Without them the isolate counts alone. */
export type RateLimiters = Partial<Record<(typeof rateLimitBindings)[keyof typeof rateLimitBindings], Binding>>

/**
 * A client's usage of its budget, in requests of a kind. `quota` is per minute; after `resetSeconds` it has more again.
 */
export type RateLimitCount = {
  name: RequestKind
  quota: number
  remaining: number
  resetSeconds: number
  /** The limit that the request exceeded, as a number of requests and seconds; undefined if it exceeded none. */
  exceeded?: { requests: number; seconds: number }
}

/**
 * What a request costs: the price of its kind, or `units`. `inIsolate` skips the bindings, which cost more than a
 * refusal. `isSpent`: the work is done, so it counts beyond the budget too, and the requests that follow wait for it.
 */
type Cost = { units?: number; inIsolate?: boolean; isSpent?: boolean }

const MINUTE_SECONDS = 60
/**
 * How much of a minute's budget may be used at once, and the least that may be, so that small budgets are not spread.
 */
const BURST_SECONDS = 20
const MIN_BURST = 60
const MAX_KEYS = 50_000
/** For how long a request from the address of a verified signer keeps the requests of others to fewer slots. */
const PRIORITY_MS = 1_000
/** For how long a refusal waits then, and how many wait at a time: each holds an open connection. */
const REFUSAL_DELAY_MS = 250
const MAX_DELAYED_REFUSALS = 500
/** How long a request waits for its turn. It is part of the request's time limit. */
const MAX_WAIT_SECONDS = 1

/**
 * Who pays: an account that signs, or a network as wide as `level` says, which has a share for each address that it may
 * be.
 */
type Payer = { budget: 'address' | 'reductions' | 'account'; key: string; shares: number; level?: number }
/** `inAdvance` is what the isolate has taken from the binding and not used yet. */
type Account = BucketLevel & { inAdvance: number }
type Charge = { payer: Payer; account: Account; cost: number; count: RateLimitCount }

export type RateLimits = ReturnType<typeof createRateLimits>
export type ClientLimits = NonNullable<ReturnType<RateLimits['ofClient']>>
export type TurnKind = Parameters<ClientLimits['enter']>[0] & string

/**
 * Creates the request budgets of a deployment, in units a minute (0: no limit), and the turns of this isolate. An
 * isolate charges the requests that it serves; the bindings count those of all isolates of a location. What reduces
 * risk has a budget and turns of its own.
 */
export function createRateLimits({ address, account, maxParallel }: RequestBudgets, bindings: RateLimiters = {}) {
  const perMinute = { address, reductions: address, account }
  /** By the width of the network, so that a client with many narrow ones cannot push out its own account. */
  const accounts = NETWORK_SHARES.map(() => new Map<string, Account>())
  const verified = createVerifiedNetworks()
  let delayedRefusals = 0
  let verifiedAt = Number.NEGATIVE_INFINITY
  const isPriority = () => Date.now() - verifiedAt < PRIORITY_MS
  const usedBy = (network: string) =>
    Math.max(0, ...accounts.map(ofLevel => ofLevel.get(`address ${network}`)?.used ?? 0))
  /**
   * Each kind has slots of its own: no other kind delays reductions and stops, the calls of a batch of MCP messages
   * take turns too, and no batch keeps others from opening sessions. Opening a stream costs most. A batch may wait for
   * events, or be read slowly, which costs no CPU.
   */
  const turns = {
    request: createTurns(() => (isPriority() ? Math.ceil(maxParallel / 4) : maxParallel), { usedBy }),
    reduction: createTurns(() => maxParallel, { usedBy }),
    stream: createTurns(() => (isPriority() ? 1 : maxParallel), { usedBy }),
    batch: createTurns(() => 2, { usedBy, maxTurnMs: 5_000 }),
    initialize: createTurns(() => 2, { usedBy }),
  }

  const bucketOf = ({ budget, shares }: Payer): BucketSize => {
    const ofMinute = perMinute[budget] * shares
    const holds = Math.min(ofMinute, Math.max(Math.ceil((ofMinute * BURST_SECONDS) / MINUTE_SECONDS), MIN_BURST))
    return { holds, seconds: (holds / ofMinute) * MINUTE_SECONDS }
  }

  function accountOf({ budget, key, level = 0 }: Payer): Account {
    const ofLevel = accounts[level] ?? new Map()
    const id = `${budget} ${key}`
    const known = ofLevel.get(id) ?? { used: 0, at: Date.now(), inAdvance: 0 }
    ofLevel.delete(id)
    ofLevel.set(id, known)
    const [oldest] = ofLevel.keys()
    if (ofLevel.size > MAX_KEYS && oldest !== undefined) ofLevel.delete(oldest)
    return known
  }

  /** Charges an account in this isolate. A request costs at most a burst, so that an unused budget pays for it. */
  function chargeHere(name: RequestKind, payer: Payer, { units = PRICES[name], isSpent }: Cost): Charge | undefined {
    if (perMinute[payer.budget] === 0) return undefined
    const bucket = bucketOf(payer)
    const account = accountOf(payer)
    const now = Date.now()
    const cost = Math.min(units, bucket.holds)
    const used = usedAt(account, bucket, now)
    const isOver = !isSpent && used + cost > bucket.holds
    Object.assign(account, { used: isOver ? used : used + cost, at: now })
    const asRequests = (amount: number) => Math.max(0, Math.floor(amount / Math.min(PRICES[name], bucket.holds)))
    const count: RateLimitCount = {
      name,
      quota: asRequests(perMinute[payer.budget] * payer.shares),
      remaining: isOver ? 0 : asRequests(bucket.holds - account.used),
      resetSeconds: Math.max(1, secondsToDrain(isOver ? used + cost - bucket.holds : account.used, bucket)),
      ...(isOver && { exceeded: { requests: asRequests(bucket.holds), seconds: Math.ceil(bucket.seconds) } }),
    }
    return { payer, account, cost, count }
  }

  /**
   * Takes what an account lacks in advance from the binding. That has the same limit for every key, so each further
   * share uses another one.
   */
  async function takeInAdvance({ payer: { budget, key, shares }, account, cost }: Charge): Promise<boolean> {
    const binding = budget === 'reductions' ? undefined : bindings[rateLimitBindings[budget]]
    if (binding === undefined) return true
    let calls = Math.max(0, Math.ceil((cost - account.inAdvance) / UNITS_PER_BINDING_CALL))
    // Before the binding responds: requests that arrive meanwhile use the rest.
    account.inAdvance += calls * UNITS_PER_BINDING_CALL - cost
    for (let share = 0; calls > 0; ) {
      const { success } = await binding.limit({ key: share === 0 ? key : `${key} ${share}` })
      if (success) calls--
      else if (++share === shares) break
    }
    if (calls > 0) account.inAdvance += cost - calls * UNITS_PER_BINDING_CALL
    return calls === 0
  }

  /**
   * Charges payers until one has too little, first in this isolate and then in the bindings: they cost more than a
   * refusal.
   */
  async function charge(name: RequestKind, payers: readonly Payer[], cost: Cost = {}) {
    const charges: Charge[] = []
    for (const payer of payers) {
      const charge = chargeHere(name, payer, cost)
      if (charge === undefined || charge.count.exceeded) return charge?.count
      charges.push(charge)
    }
    for (const charge of cost.inIsolate ? [] : charges)
      if (!(await takeInAdvance(charge))) {
        const { count } = charge
        return { ...count, remaining: 0, exceeded: { requests: count.quota, seconds: MINUTE_SECONDS } }
      }
    return charges.at(-1)?.count
  }

  /**
   * Returns the limits of the client that sent a request; undefined without an address, which only Cloudflare and its
   * local runtime set.
   */
  function ofClient(headers: Headers) {
    if (!headers.has('cf-connecting-ip')) return undefined
    const networks = clientNetworksOf(headers)
    /** The widest network first: a client may have any number of narrow ones. */
    const payersOf = (name: RequestKind): Payer[] =>
      networks
        .map((key, level): Payer => {
          const budget = name === 'reductions' ? 'reductions' : 'address'
          return { budget, key, level, shares: (NETWORK_SHARES[level] ?? 1) + verified.sharesOf(key) }
        })
        .reverse()
    const isVerified = () => verified.sharesOf(networks[0]) > 0
    let leave: Leave | undefined
    let kindOfTurn: keyof typeof turns | undefined
    let reduction: number = PRICES.reductions
    return {
      /** When the request arrived, in epoch milliseconds, plus the time that its client took to send the body. */
      arrivedAt: Date.now(),

      /**
       * Charges a request to the client's networks. Returns the narrowest one's count, or the first that has too
       * little.
       */
      count(name: RequestKind, cost: Cost = {}): Promise<RateLimitCount | undefined> {
        if (name === 'reductions') reduction = cost.units ?? reduction
        return charge(name, payersOf(name), cost)
      },

      /** Takes back the cost of a reduction or a stop, once it was sent to the chain and nobody has sent it before. */
      takeBackReduction(): void {
        for (const payer of payersOf('reductions')) accountOf(payer).used -= reduction
      },

      /** Charges a message to its signer, whatever the client's address. Throws RATE_LIMITED. */
      async countSigner(signer: string): Promise<void> {
        const count = await charge('signer', [{ budget: 'account', key: signer, shares: 1 }])
        if (count?.exceeded) throw rateLimited(count)
      },

      /**
       * Adds a share to the client's networks once an account of a registered agent has signed a new message of this
       * digest.
       */
      raise: (signer: string, digest: string): void => verified.add(networks, signer, digest),

      /** Whether a message of this digest has added a share before, so that its sender may be anyone. */
      isRepeated: (digest: string): boolean => verified.knows(digest),

      /**
       * Whether the isolate may search for the mistake behind an invalid signature: nobody waits, and the client can
       * pay.
       */
      maySearch({ isCounted = false } = {}): boolean {
        if (Object.values(turns).some(kind => kind.isCrowded())) return false
        const payers = isCounted ? [] : payersOf('signatureSearches')
        return payers.every(payer => !chargeHere('signatureSearches', payer, {})?.count.exceeded)
      },

      /**
       * Waits for the request's turn. Addresses of verified signers never wait, and while these send requests, fewer
       * requests of all others are worked on. Throws RATE_LIMITED after a second.
       */
      async enter(kind: keyof typeof turns = 'request'): Promise<void> {
        if (maxParallel === 0) return
        kindOfTurn = kind
        if (isVerified()) {
          verifiedAt = Date.now()
          return
        }
        leave = await turns[kind].enter(networks.at(-1) ?? networks[0], MAX_WAIT_SECONDS * 1_000)
        const limit = { limit: 'parallel', requests: Math.ceil(maxParallel / 2), seconds: MAX_WAIT_SECONDS }
        if (leave === undefined) throw refuse('RATE_LIMITED', limit, { retryAfterSeconds: 1 })
      },

      /** Whether the request reduces risk, so that an exhausted budget of others must not refuse it. */
      isReduction: (): boolean => kindOfTurn === 'reduction',

      /** Ends the turn. A request that only waits for the chain ends its turn early. */
      leave: (): void => leave?.(),

      /** Ends the turn for a while. Returns what waits for the next one. */
      pause(): () => Promise<void> {
        const kind = kindOfTurn
        leave?.()
        return async () => kind && this.enter(kind)
      },

      /**
       * Delays a refusal while addresses of verified signers send requests: a client that ignores refusals causes fewer
       * then.
       */
      async delayRefusal(): Promise<void> {
        if (delayedRefusals >= MAX_DELAYED_REFUSALS || !isPriority() || isVerified()) return
        delayedRefusals++
        await sleep(REFUSAL_DELAY_MS)
        delayedRefusals--
      },
    }
  }

  return { ofClient }
}

/** Returns the refusal RATE_LIMITED of a count that exceeds its limit. */
export const rateLimited = ({ name, quota, resetSeconds, exceeded }: RateLimitCount) =>
  refuse(
    'RATE_LIMITED',
    { limit: name, requests: quota, seconds: MINUTE_SECONDS, ...exceeded },
    { retryAfterSeconds: resetSeconds },
  )

/** Returns the fields of draft-ietf-httpapi-ratelimit-headers. */
export function rateLimitFields(counts: readonly RateLimitCount[]): Record<string, string> {
  if (counts.length === 0) return {}
  return {
    'RateLimit-Policy': counts.map(({ name, quota }) => `"${name}";q=${quota};w=${MINUTE_SECONDS}`).join(', '),
    RateLimit: counts
      .map(({ name, remaining, resetSeconds }) => `"${name}";r=${remaining};t=${resetSeconds}`)
      .join(', '),
  }
}
