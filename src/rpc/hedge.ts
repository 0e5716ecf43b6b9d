/**
 * Queries nodes in order and returns the first value. The next node is queried when one returns undefined or throws, or
 * after `waitMs` without a response; then either may respond. Returns undefined when every node has failed. `onSlow` is
 * called with each node that was queried before the one that responded and has not responded itself. Queries that are
 * open when there is a value are aborted. Every query must end once the controller is aborted.
 */
export async function hedge<Node, Value>(
  nodes: readonly Node[],
  query: (node: Node) => Promise<Value | undefined>,
  { waitMs, controller, onSlow }: { waitMs: number; controller: AbortController; onSlow: (node: Node) => void },
): Promise<Value | undefined> {
  const result = Promise.withResolvers<Value | undefined>()
  const silent = new Set<Node>()
  let queried = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function queryNext() {
    clearTimeout(timer)
    const node = nodes[queried]
    if (node === undefined || controller.signal.aborted) {
      if (silent.size === 0) result.resolve(undefined)
      return
    }
    queried++
    silent.add(node)
    if (queried < nodes.length) timer = setTimeout(queryNext, waitMs)
    query(node).then(
      value => conclude(node, value),
      () => conclude(node, undefined),
    )
  }

  function conclude(node: Node, value: Value | undefined) {
    const earlier = [...silent].slice(0, [...silent].indexOf(node))
    silent.delete(node)
    if (value === undefined) return queryNext()
    for (const slow of earlier) onSlow(slow)
    result.resolve(value)
  }

  queryNext()
  try {
    return await result.promise
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
    if (silent.size > 0) controller.abort()
  }
}
