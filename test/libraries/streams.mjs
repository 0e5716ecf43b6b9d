// Follows the stream at a URL with a library of JavaScript, and prints each event that the library hands out.
const [, , library, url] = process.argv
const show = ({ type, event, data }) => console.log(JSON.stringify([type ?? event ?? '', data]))

if (library === 'eventsource') {
  const { EventSource } = await import('eventsource')
  const source = new EventSource(url)
  setInterval(() => {}, 1_000) // a source between two connections does not keep a process alive
  for (const type of ['message', 'position', 'trade']) source.addEventListener(type, show)
}
if (library === '@microsoft/fetch-event-source') {
  globalThis.window = globalThis
  globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
  const { fetchEventSource } = await import('@microsoft/fetch-event-source')
  await fetchEventSource(url, {
    openWhenHidden: true,
    onmessage: show,
    onclose() {
      throw new Error('the stream ended') // asks for another connection
    },
  })
}
