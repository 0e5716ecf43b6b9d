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

/** Tells the hub's listeners that an agent has traded; nobody waits for it. */
export function announce(agentId: string, env: Pick<Env, 'MCP_HUB'>): void {
  waitUntil(
    hubOf(env)
      .resourceUpdated(riskStateUri(agentId))
      .catch(() => {}),
  )
}
