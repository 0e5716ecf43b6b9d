export type StreamedEvent = { id: string; event: string; data: string }

/** Yields the server-sent events of a response as they arrive, without heartbeats. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader()
  let buffered = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    buffered += value
    const blocks = buffered.split('\n\n')
    buffered = blocks.pop() ?? ''
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1]
      const data = field('data')
      if (data !== undefined) yield { id: field('id') ?? '', event: field('event') ?? 'message', data }
    }
  }
}
