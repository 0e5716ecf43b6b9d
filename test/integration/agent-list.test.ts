import { env } from 'cloudflare:workers'
import { AgentStatus } from '@agent-trading-service/protocol/enums'
import { beforeAll, describe, expect, it } from 'vitest'
import { chain, FRONTIER, GENESIS, newTrader, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment, type Input } from '../support/surfaces.ts'

const list = async (input: Input = {}): Promise<Body> => {
  const { status, body } = await call('listAgents', input)
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
const idsOf = ({ agents }: Body): string[] => agents.map(({ agentId }: Body) => agentId)

let first: Trader
let second: Trader
let elsewhere: Trader
beforeAll(async () => {
  first = await newTrader()
  second = await newTrader()
  elsewhere = await newTrader({ vault: FRONTIER })
})

async function allPages(input: Input): Promise<Body[]> {
  const agents: Body[] = []
  for (let cursor: string | undefined, isFirst = true; cursor || isFirst; isFirst = false) {
    const page = await list({ ...input, cursor })
    agents.push(...page.agents)
    cursor = page.nextCursor ?? undefined
  }
  return agents
}

describe('the list of agents', () => {
  it('the list of agents starts with the newest agent at once, and has the same fields as the agent alone', async () => {
    const { chainId, agents, lagBlocks, asOf } = await list({ limit: 3 })
    expect({ chainId, lagBlocks, ids: idsOf({ agents }) }).toEqual({
      chainId: deployment.chainId,
      lagBlocks: 0,
      ids: [elsewhere, second, first].map(({ agentId }) => agentId),
    })
    expect(Number(asOf.blockNumber)).toBeGreaterThan(0)
    const { body } = await call('getAgent', { agentId: second.agentId })
    expect(agents[1].agent).toEqual(body.agent)
  })

  it('the list of agents has every agent once, page by page', async () => {
    const seen = idsOf({ agents: await allPages({ limit: 7 }) })
    expect(seen).toEqual(Array.from({ length: Number(elsewhere.agentId) }, (_, index) => `${seen.length - index}`))
  })

  it.each<[string, () => Input, (agent: Body) => boolean]>([
    ['vault by slug', () => ({ vault: 'frontier' }), ({ vault }) => vault === FRONTIER],
    ['vault by address', () => ({ vault: GENESIS.toLowerCase() }), ({ vault }) => vault === GENESIS],
    ['track', () => ({ track: '0' }), ({ track }) => track === 0],
    ['track by name', () => ({ track: 'funded' }), ({ track }) => track === 1],
    ['status', () => ({ status: '1' }), ({ status }) => status === 1],
    [
      'vault and track',
      () => ({ vault: 'genesis', track: '0' }),
      ({ vault, track }) => vault === GENESIS && track === 0,
    ],
    [
      'vault and status',
      () => ({ vault: 'frontier', status: 'Active' }),
      ({ vault, status }) => vault === FRONTIER && status === 1,
    ],
    ['track and status', () => ({ track: '0', status: '1' }), ({ track, status }) => track === 0 && status === 1],
    [
      'all three',
      () => ({ vault: 'genesis', track: '0', status: '1' }),
      ({ vault, track, status }) => vault === GENESIS && track === 0 && status === 1,
    ],
  ])('the list of agents can be filtered by %s', async (_, input, matches) => {
    const matching = (await allPages({ limit: 100 })).filter(({ agent }) => matches(agent))
    expect(idsOf({ agents: await allPages({ limit: 100, ...input() }) })).toEqual(idsOf({ agents: matching }))
  })

  it('the list of agents reflects a change of status at once', async () => {
    expect(idsOf(await list({ status: 'Suspended' }))).not.toContain(first.agentId)
    await chain.setAgentStatus(BigInt(first.agentId), AgentStatus.Suspended)
    expect(idsOf(await list({ status: 'Suspended' }))).toContain(first.agentId)
    expect(idsOf(await list({ status: 'Active' }))).not.toContain(first.agentId)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    expect(idsOf(await list({ status: 'Suspended' }))).toContain(first.agentId)
    await chain.setAgentStatus(BigInt(first.agentId), AgentStatus.Active)
    expect(idsOf(await list({ status: 'Active' }))).toContain(first.agentId)
  })

  it.each<[Input, number, string]>([
    [{ status: 'Asleep' }, 400, 'INVALID_REQUEST'],
    [{ track: '-1' }, 400, 'INVALID_REQUEST'],
    [{ limit: 101 }, 400, 'INVALID_REQUEST'],
    [{ cursor: 'p3' }, 400, 'INVALID_REQUEST'],
    [{ vault: 'nowhere' }, 404, 'VAULT_NOT_FOUND'],
  ])('the list of agents refuses %o', async (input, expected, code) => {
    const { status, body } = await call('listAgents', input)
    expect({ status, code: body.code }).toEqual({ status: expected, code })
  })
})
