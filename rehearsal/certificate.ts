import { certificateHash } from '@agent-trading-service/protocol/certificate-hash'
import { encodeClaim } from '@agent-trading-service/protocol/examination-claim'
import { type Address, type Hex, verifyMessage } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import packageJson from '../package.json' with { type: 'json' }
import type { ExaminationStatistics, RunRecord } from './examination.ts'
import { contractsHash, type DeclaredAgent, jsonHash, type MarketPlan } from './plan-examination.ts'

/** The result of an examination, with hashes of all that it follows from. */
export type ExaminationResult = {
  agent: DeclaredAgent
  markets: { plan: MarketPlan; hash: string }
  /** The tape and the seed of each run, by its id. */
  runs: Record<string, { tapeHash: string; seed: number }>
  contractsHash: string
  version: string
  /** The hash of the records of all runs: trades, figures and daily equity follow from the same tapes and agent. */
  recordsHash: string
  statistics: ExaminationStatistics
}

/**
 * A result that its author has signed for the agents of an owner. It is the author's claim until somebody has
 * recomputed it. The hash names examination and owner, so that a track can require it (`certificateHash`).
 */
export type Certificate = { result: ExaminationResult; owner: Address; hash: Hex; author: Address; signature: Hex }

export function describeResult({
  agent,
  plan,
  markets,
  records,
  statistics,
}: {
  agent: DeclaredAgent
  plan: MarketPlan
  markets: string
  records: readonly RunRecord[]
  statistics: ExaminationStatistics
}): ExaminationResult {
  return {
    agent,
    markets: { plan, hash: markets },
    runs: Object.fromEntries(records.map(({ spec, tapeHash }) => [spec.id, { tapeHash, seed: spec.seed }])),
    contractsHash: contractsHash(),
    version: packageJson.version,
    recordsHash: jsonHash(records),
    statistics,
  }
}

const bps = (fraction: number) => Math.round(fraction * 10_000)

/** Returns what the owner of an agent adds to its metadata URI, so that its page shows the examination. */
export const claimOf = ({ hash, result: { statistics } }: Certificate): string =>
  `#${encodeClaim({
    hash,
    runs: statistics.runs,
    variants: statistics.variants,
    medianReturnBps: bps(statistics.return.median),
    beatsHoldingBps: bps(statistics.beatsHolding.share),
    rankBps: bps(statistics.rankAmongRandom),
    edgeBps: statistics.deflatedSharpe === null ? -1 : bps(statistics.deflatedSharpe),
  })}`

const messageOf = (hash: Hex) => `Examination of an agent on the agent trading service: ${hash}`

/** Signs a result. The message is text, so that any wallet shows what it signs. */
export async function certify(
  result: ExaminationResult,
  account: PrivateKeyAccount,
  owner: Address = account.address,
): Promise<Certificate> {
  const hash = certificateHash(result, owner)
  const signature = await account.signMessage({ message: messageOf(hash) })
  return { result, owner, hash, author: account.address, signature }
}

/**
 * Compares a certificate with a result that was computed again. Returns what differs: nothing if it holds. The number
 * of variants is the author's own count, so figures that follow from it are not compared.
 */
export async function checkCertificate(
  { result, owner, hash, author, signature }: Certificate,
  own: ExaminationResult,
): Promise<string[]> {
  const isSigned = await verifyMessage({ address: author, message: messageOf(hash), signature }).catch(() => false)
  const checks: [what: string, isSame: boolean][] = [
    ['the signature is not of its author', isSigned],
    ['the hash is not of its result', certificateHash(result, owner) === hash],
    ['the agent is another one', result.agent.hash === own.agent.hash],
    ['the contracts are others', result.contractsHash === own.contractsHash],
    ['the service has another version', result.version === own.version],
    [
      'the markets are others',
      result.markets.hash === own.markets.hash && jsonHash(result.runs) === jsonHash(own.runs),
    ],
    ['the runs had other results', result.recordsHash === own.recordsHash],
    ['the statistics do not follow from the runs', jsonHash(recomputable(result)) === jsonHash(recomputable(own))],
  ]
  return checks.flatMap(([what, isSame]) => (isSame ? [] : [what]))
}

function recomputable({ statistics }: ExaminationResult) {
  const { deflatedSharpe: _, variants: __, ...others } = statistics
  return others
}
