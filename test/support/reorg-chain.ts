import { inject } from 'vitest'

/** Replaces all blocks of the history project's chain after `ancestor` by empty ones. */
export const reorgChain = (ancestor: number): Promise<void> => post(`/reorg?ancestor=${ancestor}`)

/** Replaces all blocks after `ancestor` by four empty ones, and mines no more until `resumeMining`. */
export const rewindChain = (ancestor: number): Promise<void> => post(`/rewind?ancestor=${ancestor}`)

export const resumeMining = (): Promise<void> => post('/mine')

async function post(path: string): Promise<void> {
  const response = await fetch(`${inject('reorgUrl')}${path}`, { method: 'POST' })
  if (!response.ok) throw new Error(`The reorg failed: ${await response.text()}`)
}
