import type { Hex } from 'viem'
import { type Submission, UntrustedQuoteError } from './errors.ts'

/** A message that was posted. Until its deadline the chain accepts it, whatever the service says of it. */
type PostedMessage = Posting & {
  deadline: string
  /** Whether another program posts it, so that its outcome is not seen here. */
  elsewhere?: boolean
}
type Posting = { nonce: string; digest: Hex }

/** What a client remembers of the nonces of one agent or account. It is JSON. */
export type NonceRecord = {
  /** The first nonce after the messages that were seen executed. */
  next: string
  /** Messages that were posted and not seen executed. */
  open: readonly PostedMessage[]
  /** The last messages that were seen executed. */
  executed?: readonly Posting[]
}

/** Keeps nonce records by holder: a name of digits, letters and hyphens. */
export type NonceStore = {
  read(holder: string): NonceRecord | undefined
  write(holder: string, record: NonceRecord): void
}

/** How many executed messages are remembered: more than a reorg takes back. */
const MAX_EXECUTED = 16

export type Nonces = ReturnType<typeof createNonces>

/** Returns a store that lasts as long as the process. */
export function createNonceMemory(): NonceStore {
  const records = new Map<string, NonceRecord>()
  return { read: holder => records.get(holder), write: (holder, record) => void records.set(holder, record) }
}

/**
 * Remembers what was posted, because two messages with the same nonce are never both executed. While a posted message
 * may still be executed, only its nonce is signed again: so a service that denies an execution gets no second one.
 */
export function createNonces(store: NonceStore) {
  const inFlight = new Map<Hex, Promise<unknown>>()
  const recordOf = (holder: string) => store.read(holder) ?? { next: '0', open: [] }

  /** Returns a posted message with another nonce that the chain may still accept; undefined for a repeated message. */
  function rivalOf(holder: string, { nonce, digest }: Posting, now: number): PostedMessage | undefined {
    const { open } = recordOf(holder)
    if (open.some(message => message.digest === digest)) return undefined
    return open.find(message => message.nonce !== nonce && isOpen(message, now))
  }

  return {
    /**
     * Throws if the nonce was seen used, unless every message that used it or a later one is void after a reorg:
     * `isVoid` says so by digest. Believing it is safe, because a message with the same nonce is never executed as
     * well.
     */
    async assertUnused(
      holder: string,
      { nonce }: Pick<Posting, 'nonce'>,
      isVoid: (digest: Hex) => Promise<boolean>,
    ): Promise<void> {
      const { next, executed = [] } = recordOf(holder)
      const given = BigInt(nonce)
      if (given >= BigInt(next)) return
      const undone = executed.filter(message => BigInt(message.nonce) >= given)
      const areVoid = await Promise.all(undone.map(({ digest }) => isVoid(digest)))
      if (BigInt(undone.length) < BigInt(next) - given || areVoid.includes(false))
        throw unsafe(`at least ${next}`, nonce)
      const record = recordOf(holder)
      store.write(holder, { ...record, next: nonce, executed: executed.filter(message => !undone.includes(message)) })
    },
    /**
     * Throws while a message with another nonce may be executed; waits for one that is on its way. `isExecuted` says
     * whether one that another program posts is executed.
     */
    async assertAlone(
      holder: string,
      message: Posting,
      now: number,
      isExecuted: (digest: Hex) => Promise<boolean>,
    ): Promise<void> {
      for (let rival = rivalOf(holder, message, now); rival; rival = rivalOf(holder, message, now)) {
        const outcome = inFlight.get(rival.digest)
        if (outcome) await outcome.catch(() => {})
        else if (rival.elsewhere && (await isExecuted(rival.digest))) rememberExecuted(holder, rival)
        else throw unsafe(`${rival.nonce}, because ${rival.digest} was posted with it`, message.nonce, rival.deadline)
      }
    },
    /** Remembers a message that is about to be posted. */
    remember(holder: string, message: PostedMessage, now: number): void {
      const record = recordOf(holder)
      const others = record.open.filter(each => each.digest !== message.digest && isOpen(each, now))
      store.write(holder, { ...record, open: [...others, message] })
    },
    /** Posts a message, and remembers its nonce as used once it is executed. */
    async post<Receipt>({ nonce, digest }: Submission, send: () => Promise<Receipt>): Promise<Receipt> {
      const outcome = send().then(receipt => {
        if (nonce) rememberExecuted(nonce.holder, { nonce: nonce.value, digest })
        return receipt
      })
      inFlight.set(digest, outcome)
      try {
        return await outcome
      } finally {
        inFlight.delete(digest)
      }
    },
    usedBelow,
  }

  function rememberExecuted(holder: string, { nonce: used, digest }: Posting): void {
    usedBelow(holder, BigInt(used) + 1n)
    const record = recordOf(holder)
    const others = (record.executed ?? []).filter(({ nonce }) => nonce !== used)
    store.write(holder, { ...record, executed: [...others, { nonce: used, digest }].slice(-MAX_EXECUTED) })
  }

  /** Remembers that all nonces below `given` are used. */
  function usedBelow(holder: string, given: bigint): void {
    const record = recordOf(holder)
    if (given <= BigInt(record.next)) return
    const open = record.open.filter(({ nonce }) => BigInt(nonce) >= given)
    store.write(holder, { ...record, next: `${given}`, open })
  }
}

/** How far this machine's clock may be from the chain's, in seconds. */
export const CLOCK_SKEW_SECONDS = 60

const isOpen = ({ deadline }: PostedMessage, now: number) => Number(deadline) + CLOCK_SKEW_SECONDS >= now

const unsafe = (expected: string, given: string, deadline?: string) =>
  new UntrustedQuoteError(
    'QUOTE_NONCE_MISMATCH',
    [{ field: 'message.nonce', expected, given }],
    deadline &&
      `Resume that message. If it was refused, the nonce was used elsewhere, or the service does not tell the truth: wait until its deadline ${deadline} (Unix seconds) has passed.`,
  )
