import { inject } from 'vitest'

/** Replaces all blocks of the history project's chain after `ancestor` by empty ones. */
export async function reorgChain(ancestor: number): Promise<void> {
  const response = await fetch(`${inject('reorgUrl')}/?ancestor=${ancestor}`, { method: 'POST' })
  if (!response.ok) throw new Error(`The reorg failed: ${await response.text()}`)
}
