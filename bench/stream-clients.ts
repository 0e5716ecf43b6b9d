import { get, type IncomingMessage } from 'node:http'
import { performance } from 'node:perf_hooks'

/** Clients of event streams over real sockets, each with its own address. */
export type StreamClients = {
  /** The ids that each stream has received, in order. */
  ids: string[][]
  /** Resolves with the times (`performance.now()`) at which the first and the last stream have this many events. */
  untilAllHave(events: number): Promise<{ first: number; last: number }>
  close(): void
}

const OPENING_AT_A_TIME = 200

/** Opens a stream of GET /events for each of these clients, and resolves once all of them are open. */
export async function openStreamClients(origin: string, count: number): Promise<StreamClients> {
  const ids: string[][] = Array.from({ length: count }, () => [])
  const responses: IncomingMessage[] = []
  let wake = () => {}

  const open = (index: number) =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'cf-connecting-ip': `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}` }
      const sent = get(`${origin}/events`, { agent: false, headers }, response => {
        if (response.statusCode !== 200) return reject(new Error(`A stream was refused: ${response.statusCode}`))
        responses.push(response)
        let rest = ''
        response.setEncoding('utf8').on('data', (text: string) => {
          const frames = (rest + text).split('\n\n')
          rest = frames.pop() ?? ''
          for (const frame of frames) {
            const [, id] = /^id: (.*)\nevent: (?!position$)/m.exec(frame) ?? []
            if (id !== undefined) ids[index]?.push(id)
            else resolve() // a position or a heartbeat
          }
          wake()
        })
        response.on('error', () => {})
      })
      sent.on('error', reject)
    })

  for (let from = 0; from < count; from += OPENING_AT_A_TIME)
    await Promise.all(
      Array.from({ length: Math.min(OPENING_AT_A_TIME, count - from) }, (_, offset) => open(from + offset)),
    )

  return {
    ids,
    untilAllHave: events =>
      new Promise(resolve => {
        let complete = 0
        let first = 0
        wake = () => {
          if (first === 0) first = performance.now()
          while (complete < count && (ids[complete]?.length ?? 0) >= events) complete++
          if (complete === count) resolve({ first, last: performance.now() })
        }
      }),
    close() {
      for (const response of responses) response.destroy()
    },
  }
}
