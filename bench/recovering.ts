import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../devnet/anvil.ts'
import type { Loader } from './loader.ts'
import { type Ground, posted } from './relaying.ts'
import { startWorkerd } from './workerd.ts'

export type Recovery = {
  /** Intents that were in the journal, and neither mined nor refused, when workerd was killed. */
  accepted: number
  /** Seconds from the restart until all of them were mined. */
  seconds: number
  /** Intents that were posted and that the journal does not know: nothing of them was executed. */
  untaken: number
}

const INTENTS = 600
const CLIENTS = 128
const KILL_AFTER_MS = 1_100
const PATIENCE_MS = 20_000
const settled = ['mined', 'final', 'reverted', 'rejected']

/** Kills workerd under load, starts it again on its storage, and follows what it had taken until that is mined. */
export async function measureRecovery({ signed, vars, storage }: Ground, loader: Loader): Promise<Recovery> {
  const opens = await signed(INTENTS)
  const options = { vars, persistTo: mkdtempSync(join(storage, 'recovery-')), port: await freePort() }
  let workerd = await startWorkerd(options)
  const load = loader.fire({ origin: workerd.url, shots: posted(opens), clients: CLIENTS })
  await sleep(KILL_AFTER_MS)
  await workerd.kill9()
  const { hits } = await load
  const unanswered = opens.filter((_, index) => hits[index]?.status === 0)

  workerd = await startWorkerd(options)
  const restarted = performance.now()
  try {
    const stateOf = async (digest: string) => {
      const response = await fetch(`${workerd.url}/intents/${digest}`)
      return response.status === 404 ? undefined : ((await response.json()) as { state: string }).state
    }
    let open = unanswered.map(({ digest }) => digest)
    let accepted = 0
    let untaken = 0
    for (let first = true; open.length > 0; first = false) {
      if (performance.now() - restarted > PATIENCE_MS) return { accepted, seconds: Number.POSITIVE_INFINITY, untaken }
      const states = await Promise.all(open.map(stateOf))
      if (first) untaken = states.filter(state => state === undefined).length
      open = open.filter((_, index) => states[index] !== undefined && !settled.includes(states[index]))
      if (first) accepted = open.length
    }
    return { accepted, seconds: (performance.now() - restarted) / 1_000, untaken }
  } finally {
    await workerd.stop()
  }
}
