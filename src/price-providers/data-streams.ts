import type { CarriedPrices } from '@agent-trading-service/protocol/carried-prices'
import { currentReport, decodeEnvelope, type PriceReport } from '@agent-trading-service/protocol/price-report'
import { bytesToHex, type Hex, isHex, stringToBytes } from 'viem'
import { NO_PRICES, type PriceNeed, type Urgency } from '../chain/carried-prices.ts'
import type { createSharedReads } from '../chain/combine-concurrent-reads.ts'
import type { DataStreamsConfig } from '../config/config.ts'
import { refuse } from '../errors/refuse.ts'
import { propertyOf } from './price-provider.ts'

// Chainlink Data Streams: docs.chain.link/data-streams, "REST API" and "authentication". Its SDK needs node's
// `crypto`, ethers and ws, four times this Worker's budget for it, so this is its documented signature.

/** A report with the signatures that the chain verifies. */
export type SignedReport = { payload: Hex; report: PriceReport }

/** The provider of signed reports. */
export type PriceReports = ReturnType<typeof createPriceReports>

/** A provider signs one report of a stream per second, so within that time there is no newer one. */
const REUSE_MS = 1_000
/** A report that was sent is the newest one until the next is sent; without that, a read fetches. */
const REUSE_SENT_MS = 2_000
const TIMEOUT_MS = 3_000
/** How long a provider that failed for a stream is asked for it only for exits. */
const PAUSE_MS = 2_000
/** A Worker may wait for this many responses at once; more streams share one request. */
const MAX_SINGLE_REQUESTS = 6
/** Servers take URLs of 8 KiB, and the id of a stream has 66 characters. */
const MAX_STREAMS_PER_REQUEST = 100
/** An envelope with 31 signatures is 3 KiB, in hexadecimal digits twice as much. */
const MAX_BYTES_PER_REPORT = 16_384
/** A report so much newer than what the provider says now was one of the future: its servers differ by less. */
const MAX_LAG_SECONDS = 60
const NOT_FOUND = 404
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const unavailable = (problem: string, cause?: unknown) =>
  refuse('PRICE_REPORTS_UNAVAILABLE', { problem }, { cause, retryAfterSeconds: PAUSE_MS / 1_000 })

/**
 * Returns the provider of a deployment; one without credentials throws PRICE_REPORTS_UNAVAILABLE. `share` lets
 * concurrent readers share a request.
 */
export function createPriceReports(config: DataStreamsConfig | undefined, share: typeof createSharedReads = readAlone) {
  const held = new Map<Hex, SignedReport & { reuseUntil: number }>()
  const pausedUntil = new Map<Hex, number>()
  const absentUntil = new Map<Hex, number>()
  const fetchShared = share(async (queries: readonly (readonly Hex[])[]) => {
    const feedIds = [...new Set(queries.flat())]
    const fetched = config && (await fetchReports(config, feedIds))
    return queries.map(() => fetched)
  })

  const isNewer = (report: PriceReport, than: PriceReport | undefined) =>
    than === undefined ||
    report.observationsTimestamp > than.observationsTimestamp ||
    report.observationsTimestamp < than.observationsTimestamp - MAX_LAG_SECONDS

  function hold(each: SignedReport, reuseMs: number) {
    const known = held.get(each.report.feedId)
    const newest = known === undefined || isNewer(each.report, known.report) ? each : known
    held.set(each.report.feedId, { ...newest, reuseUntil: Date.now() + reuseMs })
    absentUntil.delete(each.report.feedId)
  }

  /** Fetches the newest reports of streams. Returns why some are missing. */
  async function renew(feedIds: readonly Hex[], isExit: boolean): Promise<unknown> {
    if (config === undefined) return unavailable('this deployment has no credentials of the provider')
    const now = Date.now()
    const asked = feedIds.filter(feedId => isExit || now >= (pausedUntil.get(feedId) ?? 0))
    const fetched = asked.length > 0 ? await fetchShared(asked) : undefined
    const failures = fetched?.failures ?? new Map<Hex, unknown>()
    for (const feedId of asked) {
      if (failures.has(feedId)) pausedUntil.set(feedId, Date.now() + PAUSE_MS)
      else {
        pausedUntil.delete(feedId)
        absentUntil.set(feedId, Date.now() + REUSE_MS) // unless it is among the reports
      }
    }
    for (const each of fetched?.reports ?? []) hold(each, REUSE_MS)
    const [failure] = asked.flatMap(feedId => failures.get(feedId) ?? [])
    return failure ?? (asked.length < feedIds.length ? unavailable('it failed a moment ago') : undefined)
  }

  async function read(feedIds: readonly Hex[], { isExit = false }: Urgency = {}) {
    const isHeld = (feedId: Hex) => Date.now() < (held.get(feedId)?.reuseUntil ?? 0)
    const missing = feedIds.filter(feedId => !isHeld(feedId) && Date.now() >= (absentUntil.get(feedId) ?? 0))
    const failure = missing.length > 0 ? await renew(missing, isExit) : undefined
    const found = new Map(
      feedIds.flatMap(feedId => (isHeld(feedId) ? [[feedId, held.get(feedId) as SignedReport]] : [])),
    )
    return { found, failure }
  }

  return {
    isConfigured: config !== undefined,
    /**
     * Returns the newest report of each stream, without those of which it has none or fails. Throws
     * PRICE_REPORTS_UNAVAILABLE if it fails for all that it has; while it fails for a stream, it is asked for that only
     * for exits, which are so the first to find it again.
     */
    async newest(feedIds: readonly Hex[], urgency?: Urgency): Promise<ReadonlyMap<Hex, SignedReport>> {
      const { found, failure } = await read(feedIds, urgency)
      if (failure !== undefined && found.size === 0) throw failure
      return found
    },
    /** Takes a report that the provider sent by itself. Returns false, and changes nothing, unless it is newer. */
    accept(signed: SignedReport): boolean {
      if (!isNewer(signed.report, held.get(signed.report.feedId)?.report)) return false
      hold(signed, REUSE_SENT_MS)
      return true
    },
    /** Makes the next read fetch the reports of streams that were not sent for a while. */
    forget(feedIds: readonly Hex[]): void {
      for (const feedId of feedIds) {
        const known = held.get(feedId)
        if (known) held.set(feedId, { ...known, reuseUntil: 0 })
      }
    },
    /**
     * Returns what a call brings along: of each asset the newest report in session. Throws if that is nothing because
     * the provider fails.
     */
    async carriedFor({ streams, feeds }: PriceNeed, urgency?: Urgency): Promise<CarriedPrices> {
      if (streams.length === 0) return feeds.length === 0 ? NO_PRICES : { reports: [], feeds }
      const { found, failure } = await read(streams.flat(), urgency)
      const current = streams.flatMap(ofAsset => currentReport(ofAsset.map(feedId => found.get(feedId))) ?? [])
      if (failure !== undefined && current.length + feeds.length === 0) throw failure
      return { reports: current.map(({ payload }) => payload), feeds }
    },
  }
}

const readAlone =
  <Query, Result>(readAll: (queries: readonly Query[]) => Promise<readonly Result[]>) =>
  async (query: Query): Promise<Result> =>
    (await readAll([query]))[0] as Result

type FetchedReports = { reports: SignedReport[]; failures: Map<Hex, unknown> }

/**
 * Fetches the newest reports of streams: of many those of the last full second together, and each one that is not among
 * them by itself. A failure counts for its streams alone, unless nothing of a page was there: then no other is tried.
 */
async function fetchReports(config: DataStreamsConfig, feedIds: readonly Hex[]): Promise<FetchedReports> {
  const found: FetchedReports = { reports: [], failures: new Map() }
  const fail = (failed: readonly Hex[], error: unknown) => {
    for (const feedId of failed) found.failures.set(feedId, error)
  }
  for (let from = 0; feedIds.length > MAX_SINGLE_REQUESTS && from < feedIds.length; from += MAX_STREAMS_PER_REQUEST) {
    try {
      found.reports.push(...(await fetchBulk(config, feedIds.slice(from, from + MAX_STREAMS_PER_REQUEST))))
    } catch (error) {
      fail(feedIds.slice(from), error)
      break
    }
  }
  const known = new Set([...found.reports.map(({ report }) => report.feedId), ...found.failures.keys()])
  const missing = feedIds.filter(feedId => !known.has(feedId))
  for (let from = 0; from < missing.length; from += MAX_SINGLE_REQUESTS) {
    const page = missing.slice(from, from + MAX_SINGLE_REQUESTS)
    const results = await Promise.allSettled(page.map(feedId => fetchLatest(config, feedId)))
    for (const [index, result] of results.entries())
      if (result.status === 'fulfilled') found.reports.push(...(result.value ? [result.value] : []))
      else fail(page.slice(index, index + 1), result.reason)
    const [first] = results
    if (first?.status === 'fulfilled' || results.some(({ status }) => status === 'fulfilled')) continue
    fail(missing.slice(from + page.length), first?.reason)
    break
  }
  return found
}

async function fetchLatest(config: DataStreamsConfig, feedId: Hex): Promise<SignedReport | undefined> {
  const body = await fetchJson(config, `/api/v1/reports/latest?feedID=${feedId}`, 1)
  return body === undefined ? undefined : toSigned(propertyOf(body, 'report'), [feedId])
}

/** Returns what can be read of the reports of the last full second. */
async function fetchBulk(config: DataStreamsConfig, feedIds: readonly Hex[]): Promise<SignedReport[]> {
  const timestamp = Math.floor(Date.now() / 1_000) - 1
  const path = `/api/v1/reports/bulk?feedIDs=${feedIds.join(',')}&timestamp=${timestamp}`
  const reports = propertyOf(await fetchJson(config, path, feedIds.length), 'reports')
  if (!Array.isArray(reports)) return []
  return reports.slice(0, feedIds.length).flatMap(report => {
    try {
      return [toSigned(report, feedIds)]
    } catch {
      return [] // it is fetched by itself, which says what is wrong with it
    }
  })
}

/** Decodes a report of one of the streams. Throws PRICE_REPORTS_UNAVAILABLE. */
export function toSigned(response: unknown, feedIds: readonly Hex[]): SignedReport {
  const payload = propertyOf(response, 'fullReport')
  let report: PriceReport
  try {
    if (!isHex(payload)) throw new Error('it is not hexadecimal')
    report = decodeEnvelope(payload)
  } catch (error) {
    throw unavailable('its report cannot be decoded', error)
  }
  if (!feedIds.includes(report.feedId)) throw unavailable('it returned the report of another stream')
  return { payload, report }
}

/** Fetches JSON for a path with its query; undefined if there is no such report. The provider's words stay here. */
async function fetchJson({ url, key, secret }: DataStreamsConfig, path: string, reports: number): Promise<unknown> {
  let response: Response
  let text: string
  try {
    response = await fetch(`${url}${path}`, {
      headers: { accept: 'application/json', ...(await authorize({ url, key, secret }, path, Date.now())) },
      redirect: 'manual', // a redirect could send the key to another host
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    text = await readText(response, reports * MAX_BYTES_PER_REPORT)
  } catch (error) {
    throw unavailable('it did not respond', error)
  }
  if (response.status === NOT_FOUND) return undefined
  if (response.status === 401 || response.status === 403) throw unavailable('it refuses the credentials')
  if (!response.ok) throw unavailable(`it returned the HTTP status ${response.status}`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw unavailable('its response is not JSON', error)
  }
}

/** Returns the headers that authenticate a GET at a time in milliseconds. */
export async function authorize(
  { url, key, secret }: DataStreamsConfig,
  path: string,
  now: number,
): Promise<Record<string, string>> {
  const base = new URL(url).pathname.replace(/\/$/, '')
  const signed = stringToBytes(`GET ${base}${path} ${EMPTY_SHA256} ${key} ${now}`)
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', stringToBytes(secret), hmac, false, ['sign'])
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', imported, signed))
  return {
    authorization: key,
    'x-authorization-timestamp': `${now}`,
    'x-authorization-signature-sha256': bytesToHex(signature).slice(2),
  }
}

/** Reads a body of at most `maxBytes`. Throws if it is longer. */
async function readText({ body }: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
