import type { Hex } from 'viem'
import { abortAfter } from '../concurrency.ts'
import type { DataStreamsConfig } from '../config/config.ts'
import { logFailure } from '../log.ts'
import { authorize, type SignedReport, toSigned } from './data-streams.ts'
import { propertyOf } from './price-provider.ts'

// The WebSocket API of Chainlink Data Streams: docs.chain.link/data-streams, "WebSocket".

/** The most streams of a connection, whose URL names them. Those beyond are fetched. */
const MAX_STREAMS = 100
const CONNECT_TIMEOUT_MS = 3_000
/** A connection without a newer report for this long is replaced: each stream has one a second. */
const MAX_SILENCE_MS = 5_000
const RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000

type Connection = { feedIds: readonly Hex[]; socket?: WebSocket; silence?: ReturnType<typeof setTimeout> }

type ReportListener = {
  /** Returns whether the report is newer than the ones before it. */
  onReport(report: SignedReport): boolean
  /** Reports from before are the listener's to fetch. */
  onOpen(feedIds: readonly Hex[]): void
  /** Called once a connection has ended or fallen silent. */
  onLost(): void
}

/**
 * Returns a connection over which the provider sends the reports of streams. `watch` opens it, also again after it was
 * lost, and closes it for no streams.
 */
export function createReportStream(config: DataStreamsConfig, { onReport, onOpen, onLost }: ReportListener) {
  let current: Connection | undefined
  let failures = 0
  let retryAt = 0
  let isWanted = false

  function watch(wanted: readonly Hex[]): void {
    const feedIds = [...new Set(wanted)].sort().slice(0, MAX_STREAMS)
    isWanted = feedIds.length > 0
    if (current && !(isWanted && feedIds.every(feedId => current?.feedIds.includes(feedId)))) close(current)
    if (current || !isWanted || Date.now() < retryAt) return
    current = { feedIds }
    connect(current)
  }

  async function connect(connection: Connection): Promise<void> {
    try {
      const path = `/api/v1/ws?feedIDs=${connection.feedIds.join(',')}`
      const headers = { upgrade: 'websocket', ...(await authorize(config, path, Date.now())) }
      const { webSocket, status } = await abortAfter(CONNECT_TIMEOUT_MS, ({ signal }) =>
        // A redirect could send the key to another host.
        fetch(`${config.url.replace('//api.', '//ws.')}${path}`, { headers, redirect: 'manual', signal }),
      )
      if (!webSocket) throw new Error(`no connection, but the HTTP status ${status}`)
      webSocket.binaryType = 'arraybuffer'
      webSocket.accept()
      if (current !== connection) return webSocket.close()
      connection.socket = webSocket
      expectReport(connection)
      webSocket.addEventListener('message', ({ data }) => hear(connection, data))
      webSocket.addEventListener('close', () => lose(connection))
      webSocket.addEventListener('error', () => lose(connection))
      onOpen(connection.feedIds)
    } catch (error) {
      logFailure('price report stream', error)
      lose(connection)
    }
  }

  /** Messages that cannot be read, and old reports, count as silence. */
  function hear(connection: Connection, data: string | ArrayBuffer): void {
    if (current !== connection) return
    let report: SignedReport
    try {
      const message: unknown = JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data))
      report = toSigned(propertyOf(message, 'report'), connection.feedIds)
    } catch {
      return
    }
    if (!onReport(report)) return
    expectReport(connection)
    failures = 0
  }

  function expectReport(connection: Connection): void {
    clearTimeout(connection.silence)
    connection.silence = setTimeout(() => lose(connection), MAX_SILENCE_MS)
  }

  function close(connection: Connection): void {
    clearTimeout(connection.silence)
    if (current === connection) current = undefined
    connection.socket?.close()
  }

  function lose(connection: Connection): void {
    if (current !== connection) return
    failures++
    retryAt = Date.now() + Math.min(RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS)
    close(connection)
    onLost()
  }

  return {
    watch,
    /** Returns when `watch` connects again (epoch milliseconds); undefined while there is nothing to connect. */
    retryAt: () => (isWanted && current === undefined ? retryAt : undefined),
  }
}
