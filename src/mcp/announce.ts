import { waitUntil } from 'cloudflare:workers'
import type { Context } from '../context.ts'
import { hubOf } from './hub.ts'
import { aroundRelays } from './relays.ts'
import { riskStateUri } from './resources.ts'

const AGENT = /^agent:(\d+)$/

/** The context that tells the hub's listeners of every agent whose intent was executed, whatever surface it came by. */
export function announcing(context: Context, env: Pick<Env, 'MCP_HUB'>): Context {
  return aroundRelays(context, async ({ group }, relay) => {
    const outcome = await relay()
    const agentId = AGENT.exec(group)?.[1]
    if (outcome.state === 'mined' && agentId !== undefined) announce(agentId, env)
    return outcome
  })
}

/** What a block brings comes at once: one call to the hub tells of all of it. */
const GATHERING_MS = 10
/** A gathering this old was cut off with the request that began it. */
const LOST_MS = 1_000
let gathering: { agentIds: Set<string>; since: number } | undefined

/** Tells the hub's listeners that an agent has traded; nobody waits for it. */
export function announce(agentId: string, env: Pick<Env, 'MCP_HUB'>): void {
  const now = Date.now()
  if (gathering && now - gathering.since < LOST_MS) {
    gathering.agentIds.add(agentId)
    return
  }
  const mine = { agentIds: new Set([agentId]), since: now }
  gathering = mine
  const tell = async () => {
    await scheduler.wait(GATHERING_MS)
    if (gathering === mine) gathering = undefined
    await hubOf(env).resourcesUpdated([...mine.agentIds].map(riskStateUri))
  }
  waitUntil(tell().catch(() => {}))
}
