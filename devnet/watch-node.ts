export type Watch = {
  /** Whether the node has published something since the last call; always true on a node that has no subscriptions. */
  hasNews(): boolean
  stop(): void
}

/** Subscribes to what a node publishes, because polling it costs both processes several percent of a core. */
export function watchNode(rpcUrl: string, topic: 'newHeads' | 'newPendingTransactions'): Watch {
  let isSubscribed = false
  let isNew = true
  const socket = new WebSocket(rpcUrl.replace(/^http/, 'ws'))
  socket.addEventListener('open', () =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: [topic] })),
  )
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(`${data}`) as { id?: number; result?: string }
    if (id !== undefined) isSubscribed = result !== undefined
    isNew = true
  })
  socket.addEventListener('close', () => {
    isSubscribed = false
  })
  return {
    hasNews() {
      const hasNews = isNew || !isSubscribed
      isNew = false
      return hasNews
    },
    stop: () => socket.close(),
  }
}
