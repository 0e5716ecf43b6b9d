import { inject } from 'vitest'

/** Replaces the newest `depth` blocks of the history project's chain by empty ones. */
export async function reorgChain(depth: number): Promise<void> {
  const response = await fetch(`${inject('reorgUrl')}/?depth=${depth}`, { method: 'POST' })
  if (!response.ok) throw new Error(`The reorg failed: ${await response.text()}`)
}
