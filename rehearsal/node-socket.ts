import { type RpcCall, rpcRequests, rpcResults } from '../devnet/anvil.ts'

/** A connection to a node that costs a third of HTTP requests. One batch is under way at a time. */
export type NodeSocket = { send<Result>(calls: readonly RpcCall[]): Promise<Result[]>; close(): void }

/** Connects to a node. */
export async function openNodeSocket(rpcUrl: string): Promise<NodeSocket> {
  const socket = new WebSocket(rpcUrl.replace(/^http/, 'ws'))
  let waiting: { resolve(text: string): void; reject(error: Error): void } | undefined
  socket.addEventListener('message', ({ data }) => waiting?.resolve(`${data}`))
  socket.addEventListener('close', () => waiting?.reject(new Error('The node has closed its connection.')))
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error(`The node does not listen on ${rpcUrl}.`)))
  })
  let last: Promise<unknown> = Promise.resolve()
  const exchange = (text: string) =>
    new Promise<string>((resolve, reject) => {
      waiting = { resolve, reject }
      if (socket.readyState === WebSocket.OPEN) socket.send(text)
      else reject(new Error('The node has closed its connection.'))
    })
  return {
    async send<Result>(calls: readonly RpcCall[]) {
      const replies = last.catch(() => {}).then(() => exchange(JSON.stringify(rpcRequests(calls))))
      last = replies
      return rpcResults<Result>(calls, JSON.parse(await replies))
    },
    close: () => socket.close(),
  }
}
