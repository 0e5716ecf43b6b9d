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
export type PriceReports = {
  isConfigured: boolean
  /**
   * Returns the newest report of each stream, without those of which it has none. Throws PRICE_REPORTS_UNAVAILABLE;
   * while the provider fails, it is asked only for exits, which are so the first to find it again.
   */
  newest(feedIds: readonly Hex[], urgency?: Urgency): Promise<ReadonlyMap<Hex, SignedReport>>
  /** Returns what a call brings along: of each asset the newest report in session. Throws as `newest`. */
  carriedFor(need: PriceNeed, urgency?: Urgency): Promise<CarriedPrices>
  /** Takes a report that the provider sent by itself. Returns false, and changes nothing, unless it is a newer one. */
  accept(report: SignedReport): boolean
  /** Makes the next read fetch the reports of streams that were not sent for a while. */
  forget(feedIds: readonly Hex[]): void
}

/** A provider signs one report of a stream per second, so within that time there is no newer one. */
const REUSE_MS = 1_000
/** A report that was sent is the newest one until the next is sent; without that, a read fetches. */
const REUSE_SENT_MS = 2_000
const TIMEOUT_MS = 3_000
/** How long a provider that failed is asked only for exits. */
const PAUSE_MS = 2_000
/** A Worker may wait for this many responses at once; more streams share one request. */
const MAX_SINGLE_REQUESTS = 6
/** An envelope with 31 signatures is 3 KiB, in hexadecimal digits twice as much. */
const MAX_BYTES_PER_REPORT = 16_384
const NOT_FOUND = 404
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const unavailable = (problem: string, cause?: unknown) =>
  refuse('PRICE_REPORTS_UNAVAILABLE', { problem }, { cause, retryAfterSeconds: PAUSE_MS / 1_000 })

/**
 * Returns the provider of a deployment; one without credentials throws PRICE_REPORTS_UNAVAILABLE. `share` lets
 * concurrent readers share a request.
 */
export function createPriceReports(
  config: DataStreamsConfig | undefined,
  share: typeof createSharedReads = readAlone,
): PriceReports {
  const held = new Map<Hex, SignedReport & { reuseUntil: number }>()
  let pausedUntil = 0
  const fetchShared = share(async (queries: readonly (readonly Hex[])[]) => {
    const feedIds = [...new Set(queries.flat())]
    const reports = config && (await fetchReports(config, feedIds))
    return queries.map(() => reports)
  })

  function hold(each: SignedReport, reuseMs: number) {
    const { feedId, observationsTimestamp } = each.report
    const known = held.get(feedId)
    const isNewest = known === undefined || observationsTimestamp >= known.report.observationsTimestamp
    held.set(feedId, { ...(isNewest ? each : known), reuseUntil: Date.now() + reuseMs })
  }

  async function newest(feedIds: readonly Hex[], { isExit = false }: Urgency = {}) {
    const isHeld = (feedId: Hex) => Date.now() < (held.get(feedId)?.reuseUntil ?? 0)
    const missing = feedIds.filter(feedId => !isHeld(feedId))
    if (missing.length > 0) {
      if (config === undefined) throw unavailable('this deployment has no credentials of the provider')
      if (!isExit && Date.now() < pausedUntil) throw unavailable('it failed a moment ago')
      const reports = await fetchShared(missing).catch(error => {
        pausedUntil = Date.now() + PAUSE_MS
        throw error
      })
      pausedUntil = 0
      for (const each of reports ?? []) hold(each, REUSE_MS)
    }
    return new Map(feedIds.flatMap(feedId => (isHeld(feedId) ? [[feedId, held.get(feedId) as SignedReport]] : [])))
  }

  return {
    isConfigured: config !== undefined,
    newest,
    accept(signed) {
      const { feedId, observationsTimestamp } = signed.report
      if (observationsTimestamp <= (held.get(feedId)?.report.observationsTimestamp ?? 0)) return false
      hold(signed, REUSE_SENT_MS)
      return true
    },
    forget(feedIds) {
      for (const feedId of feedIds) {
        const known = held.get(feedId)
        if (known) held.set(feedId, { ...known, reuseUntil: 0 })
      }
    },
    async carriedFor({ streams, feeds }, urgency) {
      if (streams.length === 0) return feeds.length === 0 ? NO_PRICES : { reports: [], feeds }
      const reports = await newest(streams.flat(), urgency)
      const current = streams.map(ofAsset => currentReport(ofAsset.map(feedId => reports.get(feedId))))
      return { reports: current.flatMap(each => (each ? [each.payload] : [])), feeds }
    },
  }
}

const readAlone =
  <Query, Result>(readAll: (queries: readonly Query[]) => Promise<readonly Result[]>) =>
  async (query: Query): Promise<Result> =>
    (await readAll([query]))[0] as Result

/**
 * Fetches the newest reports of streams: of many those of the last full second in one request, and each one that is not
 * among them by itself.
 */
async function fetchReports(config: DataStreamsConfig, feedIds: readonly Hex[]): Promise<SignedReport[]> {
  const reports = feedIds.length > MAX_SINGLE_REQUESTS ? await fetchBulk(config, feedIds) : []
  const missing = feedIds.filter(feedId => !reports.some(({ report }) => report.feedId === feedId))
  for (let from = 0; from < missing.length; from += MAX_SINGLE_REQUESTS) {
    const page = missing.slice(from, from + MAX_SINGLE_REQUESTS)
    const fetched = await Promise.all(page.map(id => fetchJson(config, `/api/v1/reports/latest?feedID=${id}`, 1)))
    reports.push(...fetched.flatMap(body => (body === undefined ? [] : [toSigned(propertyOf(body, 'report'), page)])))
  }
  return reports
}

async function fetchBulk(config: DataStreamsConfig, feedIds: readonly Hex[]): Promise<SignedReport[]> {
  const timestamp = Math.floor(Date.now() / 1_000) - 1
  const path = `/api/v1/reports/bulk?feedIDs=${feedIds.join(',')}&timestamp=${timestamp}`
  const reports = propertyOf(await fetchJson(config, path, feedIds.length), 'reports')
  return Array.isArray(reports) ? reports.slice(0, feedIds.length).map(report => toSigned(report, feedIds)) : []
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
