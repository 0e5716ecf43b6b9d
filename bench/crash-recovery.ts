import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../devnet/anvil.ts'
import type { Devnet } from '../devnet/index.ts'
import type { LoadResult } from './load-child.ts'
import type { LoadGenerator } from './load-generator.ts'
import { posted, type Testbed } from './relay-throughput.ts'
import { startWorkerd } from './workerd.ts'

export type Recovery = {
  /** Journalled intents without a response when workerd was killed. */
  accepted: number
  /** Seconds from the restart until all of them are mined. */
  seconds: number
}

const INTENTS = 600
const CLIENTS = 128
/** Intents relayed as a warm-up, because a cold service has journalled nothing when it is killed. */
const WARM_UP = 256
/** workerd is killed once this many of the executor's transactions are pending. */
const IN_FLIGHT = 16
const TIMEOUT_MS = 20_000
const MAX_ATTEMPTS = 5
const POLL_MS = 50
const outcomes: (string | undefined)[] = ['mined', 'final', 'reverted', 'rejected']

/** Measures how fast a killed service recovers. Repeats the kill if no journalled intent was waiting for a response. */
export async function measureRecovery(testbed: Testbed, loadGenerator: LoadGenerator): Promise<Recovery> {
  for (let attempt = 1; ; attempt++) {
    const recovery = await killAndRestart(testbed, loadGenerator)
    if (recovery.accepted > 0 || attempt === MAX_ATTEMPTS) return recovery
  }
}

/** Kills workerd under load, restarts it on the same storage, and polls the accepted intents until they are mined. */
async function killAndRestart(
  { devnet, signed, vars, storage }: Testbed,
  loadGenerator: LoadGenerator,
): Promise<Recovery> {
  const all = await signed(WARM_UP + INTENTS)
  const opens = all.slice(WARM_UP)
  const options = { vars, persistTo: mkdtempSync(join(storage, 'recovery-')), port: await freePort() }
  let workerd = await startWorkerd(options)
  await loadGenerator.run({ origin: workerd.url, requests: posted(all.slice(0, WARM_UP)), clients: CLIENTS })
  const began = performance.now()
  const load = loadGenerator.run({ origin: workerd.url, requests: posted(opens), clients: CLIENTS })
  await inFlight(devnet, IN_FLIGHT)
  const killedAt = performance.now() - began
  await workerd.kill9()
  const { results } = await load
  const isCutOff = (result: LoadResult | undefined) => result?.status === 0 && result.at < killedAt
  const cutOff = opens.filter((_, index) => isCutOff(results[index]))

  workerd = await startWorkerd(options)
  const restarted = performance.now()
  try {
    const stateOf = async (digest: string) => {
      const response = await fetch(`${workerd.url}/intents/${digest}`)
      return response.status === 404 ? undefined : ((await response.json()) as { state: string }).state
    }
    let open = cutOff.map(({ digest }) => digest)
    let accepted: number | undefined
    while (open.length > 0 && performance.now() - restarted < TIMEOUT_MS) {
      const states = await Promise.all(open.map(stateOf))
      accepted ??= states.filter(state => state !== undefined).length
      open = open.filter((_, index) => states[index] !== undefined && !outcomes.includes(states[index]))
      if (open.length > 0) await sleep(POLL_MS)
    }
    const seconds = open.length > 0 ? Number.POSITIVE_INFINITY : (performance.now() - restarted) / 1_000
    return { accepted: accepted ?? 0, seconds }
  } finally {
    await workerd.stop()
  }
}

/** Resolves once `count` of the executor's transactions are pending. */
async function inFlight({ client, deployment }: Devnet, count: number): Promise<void> {
  const { address } = deployment.accounts.executor
  const countAt = (blockTag: 'pending' | 'latest') => client.getTransactionCount({ address, blockTag })
  const until = performance.now() + TIMEOUT_MS
  while (performance.now() < until) {
    const [pending, latest] = await Promise.all([countAt('pending'), countAt('latest')])
    if (pending - latest >= count) return
    await sleep(5)
  }
  throw new Error(`The executor had fewer than ${count} pending transactions for ${TIMEOUT_MS / 1000} s.`)
}
