import { durationText } from '@agent-trading-service/protocol/duration'
import { type PrimaryType, reducesRisk } from '@agent-trading-service/protocol/typed-data'
import { machineTime } from './deployment.ts'
import { CLOCK_SKEW_SECONDS } from './nonces.ts'

/** By how much two clocks may differ for what reduces risk: a zone that was taken for UTC, a night asleep. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 86_400

/** What a deadline that the service suggests is judged by. Times are Unix seconds. */
export type DeadlineTerms = {
  primaryType: PrimaryType
  /** The newest block's time if a node is read, else this machine's. */
  now: number
  isFromNode: boolean
  /** The service's clock as the quote has it. It may be anything. */
  serverTime: unknown
  maxDeadlineSeconds: number
}

export type JudgedDeadline = {
  /** Why it is not signed; undefined if it may be. */
  refusal?: { expected: string; remedy: string | undefined }
  /** What to know of the clocks before it is signed. */
  warning?: string
  /** By how much this machine's clock is ahead, where the service's is believed. */
  secondsAhead: number
}

/**
 * Judges a deadline that the service suggests. It has to be near by our own clock. If that is a machine's, and the
 * service's differs from it by up to a day, a message that reduces risk only has to be near by the service's clock: one
 * that lies gets a signature for what was asked for, valid for up to a day longer.
 */
export function judgeDeadline(deadline: string | undefined, terms: DeadlineTerms): JudgedDeadline {
  const { primaryType, now, isFromNode, maxDeadlineSeconds } = terms
  const isBetween = (from: number, to: number) =>
    deadline !== undefined && BigInt(deadline) >= BigInt(from) && BigInt(deadline) <= BigInt(to)
  const from = now - CLOCK_SKEW_SECONDS
  const to = Math.max(now, machineTime()) + maxDeadlineSeconds
  if (isBetween(from, to)) return { secondsAhead: 0 }
  const refuse = (remedy?: string) => ({
    refusal: { expected: `${from} to ${to} (Unix seconds)`, remedy },
    secondsAhead: 0,
  })
  const serverTime = secondsOf(terms.serverTime)
  const ahead = now - (serverTime ?? now)
  if (serverTime === undefined || Math.abs(ahead) <= CLOCK_SKEW_SECONDS) return refuse()
  if (!isBetween(serverTime - CLOCK_SKEW_SECONDS, serverTime + maxDeadlineSeconds)) return refuse()
  if (isFromNode) return refuse(nodeRemedy(now, serverTime))
  const clocks = `This machine's clock says ${textOf(now)}, the service's ${textOf(serverTime)}: this machine is ${differenceText(ahead)}.`
  if (!reducesRisk(primaryType) || Math.abs(ahead) > MAX_CLOCK_DIFFERENCE_SECONDS)
    return refuse(`${clocks} Do not sign this before you know which is right. ${CURE}`)
  return {
    warning: `${clocks} The message only reduces risk, so it is not refused; it is valid until ${textOf(Number(deadline))}. ${CURE}`,
    secondsAhead: Math.max(0, ahead),
  }
}

const CURE =
  "Correct this machine's clock, or pass a node as `rpcUrl` (ats: `--rpc`): the time of its newest block then counts."

const nodeRemedy = (now: number, serverTime: number) =>
  `Do not sign this. The newest block of the node is from ${textOf(now)}, this machine's clock says ${textOf(machineTime())}, and the service's ${textOf(serverTime)}: the service is ${differenceText(serverTime - now)} of the block. Pass a node that has caught up; if it has, the service is not to be trusted.`

const differenceText = (ahead: number) => `${durationText(ahead)} ${ahead > 0 ? 'ahead' : 'behind'}`

const textOf = (seconds: number) => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')

/** Returns Unix seconds that a date can hold; undefined for anything else. */
const secondsOf = (given: unknown) => (/^\d{1,11}$/.test(`${given}`) ? Number(given) : undefined)
