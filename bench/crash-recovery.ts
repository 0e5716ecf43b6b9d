import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../devnet/anvil.ts'
import type { Devnet } from '../devnet/index.ts'
import type { Hit } from './load-client.ts'
import type { Loader } from './load-process.ts'
import { type Ground, posted } from './relay-throughput.ts'
import { startWorkerd } from './workerd.ts'

export type Recovery = {
  /** Intents that nobody was told about when workerd was killed, and that are in its journal. */
  accepted: number
  /** Seconds from the restart until all of them were mined. */
  seconds: number
}

const INTENTS = 600
const CLIENTS = 128
/** So many are relayed before, for what is cold has taken in nothing when it is killed. */
const WARM_UP = 256
/** The kill comes once so many transactions of the executor wait for their block. */
const IN_FLIGHT = 16
const PATIENCE_MS = 20_000
const TRIES = 5
const LOOK_MS = 50
const settled: (string | undefined)[] = ['mined', 'final', 'reverted', 'rejected']

/** Kills workerd under load, at a moment at which it holds intents that nobody was told about. */
export async function measureRecovery(ground: Ground, loader: Loader): Promise<Recovery> {
  for (let tries = 1; ; tries++) {
    const recovery = await killAndRestart(ground, loader)
    if (recovery.accepted > 0 || tries === TRIES) return recovery
  }
}

/** Kills workerd, starts it again on its storage, and follows what it had taken until that is mined. */
async function killAndRestart({ devnet, signed, vars, storage }: Ground, loader: Loader): Promise<Recovery> {
  const all = await signed(WARM_UP + INTENTS)
  const opens = all.slice(WARM_UP)
  const options = { vars, persistTo: mkdtempSync(join(storage, 'recovery-')), port: await freePort() }
  let workerd = await startWorkerd(options)
  await loader.fire({ origin: workerd.url, shots: posted(all.slice(0, WARM_UP)), clients: CLIENTS })
  const began = performance.now()
  const load = loader.fire({ origin: workerd.url, shots: posted(opens), clients: CLIENTS })
  await inFlight(devnet, IN_FLIGHT)
  const killedAt = performance.now() - began
  await workerd.kill9()
  const { hits } = await load
  const isCutOff = (hit: Hit | undefined) => hit?.status === 0 && hit.at < killedAt
  const cutOff = opens.filter((_, index) => isCutOff(hits[index]))

  workerd = await startWorkerd(options)
  const restarted = performance.now()
  try {
    const stateOf = async (digest: string) => {
      const response = await fetch(`${workerd.url}/intents/${digest}`)
      return response.status === 404 ? undefined : ((await response.json()) as { state: string }).state
    }
    let open = cutOff.map(({ digest }) => digest)
    let accepted: number | undefined
    while (open.length > 0 && performance.now() - restarted < PATIENCE_MS) {
      const states = await Promise.all(open.map(stateOf))
      accepted ??= states.filter(state => state !== undefined).length
      open = open.filter((_, index) => states[index] !== undefined && !settled.includes(states[index]))
      if (open.length > 0) await sleep(LOOK_MS)
    }
    const seconds = open.length > 0 ? Number.POSITIVE_INFINITY : (performance.now() - restarted) / 1_000
    return { accepted: accepted ?? 0, seconds }
  } finally {
    await workerd.stop()
  }
}

/** Resolves once so many of the executor's transactions are in the pool. */
async function inFlight({ client, deployment }: Devnet, count: number): Promise<void> {
  const { address } = deployment.accounts.executor
  const countAt = (blockTag: 'pending' | 'latest') => client.getTransactionCount({ address, blockTag })
  const until = performance.now() + PATIENCE_MS
  while (performance.now() < until) {
    const [pending, latest] = await Promise.all([countAt('pending'), countAt('latest')])
    if (pending - latest >= count) return
    await sleep(5)
  }
  throw new Error('nothing was in flight when workerd was to be killed')
}
