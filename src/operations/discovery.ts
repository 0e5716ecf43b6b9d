import { z } from 'zod'
import { getRegistrationTerms } from '../chain/agents.ts'
import { readMarket } from '../chain/listings.ts'
import type { Config } from '../config.ts'
import type { Context } from '../context.ts'
import { Refusal } from '../errors/refusal.ts'
import { addressOut } from '../resources/primitives.ts'
import { type Definition, defineOperation, type Operation } from './define-operation.ts'

const endpoint = z.object({
  method: z.enum(['GET', 'POST']),
  path: z.string().meta({ example: '/vaults' }),
  summary: z.string(),
  tool: z.string().nullable().meta({ description: 'The same as an MCP tool; null where there is none' }),
})

const discovery = z
  .object({
    service: z.string(),
    version: z.string().meta({ example: '0.1.0' }),
    chainId: z.int().nullable().meta({ description: 'Chain of this deployment; null when none is configured' }),
    description: z.string(),
    links: z
      .object({
        openapi: z.string(),
        docs: z.string().nullable(),
        llms: z.string(),
        mcp: z.string(),
        health: z.string(),
        app: z.string().nullable(),
      })
      .meta({ description: 'Where to go on; null what this deployment does not serve' }),
    contracts: z.record(z.string(), addressOut).meta({ description: 'Addresses by contract name' }),
    features: z
      .object({
        trading: z.boolean(),
        registration: z.boolean(),
        x402: z.boolean(),
        priceRefresh: z.boolean(),
        docs: z.boolean(),
      })
      .meta({ description: 'What this deployment is configured to do' }),
    state: z
      .object({
        tradingPaused: z.boolean().nullable().meta({ description: 'Whether trading is paused in every vault' }),
        registryPaused: z.boolean().nullable(),
      })
      .meta({ description: 'Null where the chain cannot be read' }),
    endpoints: z.array(endpoint),
    deployments: z.array(z.object({ chainId: z.int(), baseUrl: z.string() })),
  })
  .meta({ id: 'Discovery' })

export const DESCRIPTION =
  'Registry and trading interface for autonomous agents that open and manage token positions inside thematic vaults, over HTTP and as an MCP server.'

const definition = {
  id: 'getDiscovery',
  method: 'get',
  path: '/',
  tag: 'Discovery',
  summary: 'What this deployment is',
  description:
    'Name, chain, contracts, features and every endpoint with its MCP tool. It answers also when the chain cannot be read.',
  status: 200,
  output: discovery,
  errors: [],
} as const satisfies Definition

type Row = Pick<Operation, 'method' | 'path' | 'summary' | 'tool'>

/** The service's description of itself, made from the operations beside it. */
export const discoveryOf = (others: readonly Row[]) =>
  defineOperation(definition, async context => ({
    ...describe(context.config),
    state: await stateOf(context),
    endpoints: [definition as Row, ...others].map(({ method, path, summary, tool }) => ({
      method: method === 'get' ? ('GET' as const) : ('POST' as const),
      path,
      summary,
      tool: tool ?? null,
    })),
  }))

function describe(config: Config) {
  const { service, version, chain, trading, baseUrl = '', docsEnabled } = config
  return {
    service,
    version,
    chainId: chain?.id ?? null,
    description: DESCRIPTION,
    links: {
      openapi: `${baseUrl}/docs/swagger.json`,
      docs: docsEnabled ? `${baseUrl}/docs` : null,
      llms: `${baseUrl}/llms.txt`,
      mcp: `${baseUrl}/mcp`,
      health: `${baseUrl}/health/ready`,
      app: null,
    },
    contracts: Object.fromEntries(
      Object.entries({ ...chain?.contracts, ...trading }).flatMap(([name, at]) => (at ? [[name, at] as const] : [])),
    ),
    features: {
      trading: trading !== undefined && config.executorKeys.length > 0,
      registration: chain !== undefined && config.relayerKey !== undefined,
      x402: config.payment !== undefined,
      priceRefresh: config.priceProvider !== undefined && config.oracleUpdaterKey !== undefined,
      docs: docsEnabled,
    },
    deployments: Object.entries(config.deployments).map(([id, url]) => ({ chainId: Number(id), baseUrl: url })),
  }
}

async function stateOf(context: Context) {
  try {
    const { chain } = context
    const [{ market }, { terms }] = await Promise.all([readMarket(chain), getRegistrationTerms(chain)])
    const { vaults } = market
    return {
      tradingPaused: vaults.length > 0 && vaults.every(({ tradingPaused }) => tradingPaused),
      registryPaused: terms.paused,
    }
  } catch (error) {
    if (error instanceof Refusal) return { tradingPaused: null, registryPaused: null }
    throw error
  }
}
