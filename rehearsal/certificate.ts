import { certificateHash } from '@agent-trading-service/protocol/certificate-hash'
import { encodeClaim } from '@agent-trading-service/protocol/examination-claim'
import { type Address, type Hex, isAddress, verifyMessage } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { z } from 'zod'
import packageJson from '../package.json' with { type: 'json' }
import { MARKET_KINDS } from '../packages/cli/src/commands/rehearse.ts'
import { Failure } from '../packages/cli/src/failure.ts'
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

const hash = z.string().regex(/^[0-9a-f]{64}$/)
const address = z.string().refine(text => isAddress(text))
const count = (max: number) => z.int().min(0).max(max)
const certificateSchema = z.object({
  result: z.object({
    agent: z.object({ command: z.array(z.string()), files: z.record(z.string(), z.string()), hash }),
    markets: z.object({
      plan: z.object({
        seeds: count(100_000),
        days: count(366).min(1),
        kinds: z.array(z.enum(MARKET_KINDS)).min(1),
        allHours: z.boolean(),
        windows: count(1_000),
        disguises: count(1_000),
      }),
      hash,
    }),
    runs: z.record(z.string(), z.object({ tapeHash: hash, seed: z.int() })),
    contractsHash: hash,
    version: z.string(),
    recordsHash: hash,
    statistics: z.looseObject({}),
  }),
  owner: address,
  hash: z.string().regex(/^0x[0-9a-f]{64}$/),
  author: address,
  signature: z.string().regex(/^0x[0-9a-fA-F]+$/),
})

/** Parses the file of a certificate. Throws a failure that names what is wrong in it. */
export function parseCertificate(file: string, text: string): Certificate {
  const fail = (problem: string) =>
    new Failure('usage', `${file} is not a certificate: ${problem}.`, {
      code: 'CERTIFICATE_INVALID',
      remedy: 'Pass the file that `ats examine --certificate` has written.',
    })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw fail('it is no JSON')
  }
  const issue = certificateSchema.safeParse(value).error?.issues[0]
  if (issue !== undefined) throw fail(`${issue.path.join('.') || 'it'} is missing or not valid`)
  // As it was written: the hash depends on the order of the fields.
  return value as Certificate
}

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

type Check = [what: string, isSame: boolean]
const failed = (checks: readonly Check[]) => checks.flatMap(([what, isSame]) => (isSame ? [] : [what]))

/**
 * Compares a certificate with what is known before its markets are played: their hash, version and contracts. Returns
 * what differs.
 */
export const checkOrigin = async (certificate: Certificate, markets: string): Promise<string[]> =>
  failed(await originChecks(certificate, { markets, contractsHash: contractsHash(), version: packageJson.version }))

async function originChecks(
  { result, owner, hash, author, signature }: Certificate,
  own: { markets: string; contractsHash: string; version: string },
): Promise<Check[]> {
  const isSigned = await verifyMessage({ address: author, message: messageOf(hash), signature }).catch(() => false)
  return [
    ['the signature is not of its author', isSigned],
    ['the hash is not of its result', certificateHash(result, owner) === hash],
    ['the contracts are others', result.contractsHash === own.contractsHash],
    ['the service has another version', result.version === own.version],
    ['the plan or the tape of the markets is another one', result.markets.hash === own.markets],
  ]
}

/**
 * Compares a certificate with a result that was computed again. Returns what differs: nothing if it holds. The number
 * of variants is the author's own count, so figures that follow from it are not compared, but they cannot be better
 * than those of one variant.
 */
export async function checkCertificate(certificate: Certificate, own: ExaminationResult): Promise<string[]> {
  const { result } = certificate
  return failed([
    ...(await originChecks(certificate, { ...own, markets: own.markets.hash })),
    ['the agent is another one', result.agent.hash === own.agent.hash],
    ['the markets are others', jsonHash(result.runs) === jsonHash(own.runs)],
    ['the runs had other results', result.recordsHash === own.recordsHash],
    [
      'the statistics do not follow from the runs',
      jsonHash(recomputable(result)) === jsonHash(recomputable(own)) && isDeflated(result.statistics),
    ],
  ])
}

function recomputable({ statistics }: ExaminationResult) {
  const { deflatedSharpe: _, variants: __, ...others } = statistics
  return others
}

const isDeflated = ({ variants, deflatedSharpe, probabilisticSharpe }: ExaminationStatistics): boolean =>
  variants === 1
    ? deflatedSharpe === probabilisticSharpe
    : variants > 1 && Number(deflatedSharpe) <= Number(probabilisticSharpe)
