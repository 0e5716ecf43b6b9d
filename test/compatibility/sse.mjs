// Reads the events of an agent with an SSE library: sse.mjs LIBRARY URL. Prints what it has read.

const [, , library, url] = process.argv
const WANTED = 2
const trades = []
let empty = 0

function take({ id, lastEventId, event, type, data }) {
  if (!data) empty += 1
  if ((event ?? type) !== 'trade') return
  trades.push({ id: id ?? lastEventId, ...JSON.parse(data) })
  if (trades.length < WANTED) return
  if (!trades.every(trade => trade.id && trade.positionId)) throw new Error(JSON.stringify(trades))
  console.log(`${trades.length} trades with ids${empty > 0 ? `, ${empty} empty events` : ''}`)
  process.exit()
}

const libraries = {
  async eventsource() {
    const { EventSource } = await import('eventsource')
    listenTo(new EventSource(url))
  },
  async 'eventsource-client'() {
    const { createEventSource } = await import('eventsource-client')
    createEventSource({ url, onMessage: take })
  },
  async 'eventsource-parser'() {
    const { EventSourceParserStream } = await import('eventsource-parser/stream')
    const { body } = await fetch(url)
    for await (const event of body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()))
      take(event)
  },
  async 'launchdarkly-eventsource'() {
    const { EventSource } = await import('launchdarkly-eventsource')
    listenTo(new EventSource(url))
  },
  async 'fetch-event-stream'() {
    const { events } = await import('fetch-event-stream')
    for await (const event of events(await fetch(url))) take(event)
  },
  async 'fetch-event-source'() {
    globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
    globalThis.window = globalThis
    const { fetchEventSource } = await import('@microsoft/fetch-event-source')
    await fetchEventSource(url, { fetch, openWhenHidden: true, onmessage: take })
  },
}

const listenTo = source => {
  source.onmessage = take
  source.addEventListener('trade', take)
}

setTimeout(() => {
  console.error(`${trades.length} trades, ${empty} empty events in 30 seconds`)
  process.exit(1)
}, 30_000)
await libraries[library]()
