/**
 * Queries nodes in order and returns the first value. The next node is queried when one returns undefined or throws, or
 * after `waitMs` without a response; then either may respond. Returns undefined when every node has failed. `onSlow` is
 * called with each node that was queried before the one that responded and has not responded itself. `abort` ends the
 * queries that are open when there is a value.
 */
export async function hedge<Node, Value>(
  nodes: readonly Node[],
  query: (node: Node) => Promise<Value | undefined>,
  {
    waitMs,
    signal,
    abort,
    onSlow,
  }: { waitMs: number; signal: AbortSignal; abort: () => void; onSlow: (node: Node) => void },
): Promise<Value | undefined> {
  const [only, ...others] = nodes
  if (only !== undefined && others.length === 0) return query(only).catch(() => undefined)

  const result = Promise.withResolvers<Value | undefined>()
  const rest = nodes.values()
  const silent = new Set<Node>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function queryNext() {
    clearTimeout(timer)
    const { value: node, done } = rest.next()
    if (done) {
      if (silent.size === 0) result.resolve(undefined)
      return
    }
    silent.add(node)
    timer = setTimeout(queryNext, waitMs)
    query(node).then(
      value => conclude(node, value),
      () => conclude(node, undefined),
    )
  }

  function conclude(node: Node, value: Value | undefined) {
    const earlier = [...silent].slice(0, [...silent].indexOf(node))
    silent.delete(node)
    if (signal.aborted) return
    if (value === undefined) return queryNext()
    for (const slow of earlier) onSlow(slow)
    result.resolve(value)
  }

  signal.addEventListener('abort', () => {
    clearTimeout(timer)
    result.resolve(undefined)
  })
  queryNext()
  try {
    return await result.promise
  } finally {
    clearTimeout(timer) // a pending timer would keep a Durable Object in memory
    if (silent.size > 0) abort()
  }
}
