import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { must, read } from '../chain/chain.ts'
import type { Context } from '../context.ts'
import { errorCodes } from '../errors/catalogue.ts'
import { listPositions } from '../operations/positions.ts'
import { getRiskState } from '../operations/risk-state.ts'
import { listVaults } from '../operations/vaults.ts'
import { contractCodes } from '../protocol/contract-errors.ts'
import { domainAbi, hashExits, type PrimaryType, toDomain } from '../protocol/typed-data.ts'
import { presentEip712 } from '../resources/intent.ts'
import { refusalBody } from './tools.ts'

const mimeType = 'application/json'

/** What can be read without arguments: the description for a model, and the value. */
const readable = {
  'svc://vaults': {
    name: 'vaults',
    title: 'Vaults',
    description: 'Every vault with the risk policy of its tracks, as svc_list_vaults answers it.',
    read: (context: Context): Promise<unknown> => listVaults.run(context, {}),
  },
  'svc://errors': {
    name: 'errors',
    title: 'Error codes',
    description:
      'Every code that a refusal can carry: of the service and of the contracts, each with status and remedy.',
    read: async (): Promise<unknown> => ({
      service: errorCodes.filter(({ code }) => !contractCodes.includes(code)),
      contracts: errorCodes.filter(({ code }) => contractCodes.includes(code)),
    }),
  },
  'svc://signing': {
    name: 'signing',
    title: 'Signing',
    description: 'EIP-712 types and domains of every message that an agent signs, and how exitsHash is computed.',
    read: signing,
  },
}
type Uri = keyof typeof readable

export const resources = Object.entries(readable).map(([uri, { name, title, description }]) => ({
  uri,
  name,
  title,
  description,
  mimeType,
}))

export const resourceTemplates = [
  {
    uriTemplate: 'svc://agents/{agentId}/risk-state',
    name: 'risk-state',
    title: 'Risk state of an agent',
    description:
      'As svc_get_risk_state answers it. Subscribe to hear when the agent has traded, an exit has fired, or a limit is reached or left.',
    mimeType,
  },
  {
    uriTemplate: 'svc://agents/{agentId}/positions',
    name: 'positions',
    title: 'Open positions of an agent',
    description: 'As svc_get_agent_positions answers them. Subscribe to hear when they change, whoever changes them.',
    mimeType,
  },
]
const OF_AGENT = /^svc:\/\/agents\/([1-9][0-9]{0,77})\/(risk-state|positions)$/
const ofAgent = { 'risk-state': getRiskState, positions: listPositions }

/** The resources that change with what an agent holds. */
export const agentUris = (agentId: number) => Object.keys(ofAgent).map(name => `svc://agents/${agentId}/${name}`)

/** Reads a resource. Throws a protocol error: for an unknown URI, or with the error body of the refusal as its data. */
export async function readResource(context: Context, uri: string, call: ServerContext): Promise<ReadResourceResult> {
  const value = await contentsOf(context, uri).catch((error: unknown) => {
    if (error instanceof ProtocolError) throw error
    const body = refusalBody(error, uri, call)
    throw new ProtocolError(ProtocolErrorCode.InternalError, body.error, body)
  })
  return { contents: [{ uri, mimeType, text: JSON.stringify(value) }] }
}

/** Whether a URI names a resource that can be read and subscribed to. */
export const isResource = (uri: string) => Object.hasOwn(readable, uri) || OF_AGENT.test(uri)

async function contentsOf(context: Context, uri: string): Promise<unknown> {
  if (Object.hasOwn(readable, uri)) return readable[uri as Uri].read(context)
  const [, agentId, name] = OF_AGENT.exec(uri) ?? []
  if (agentId === undefined) throw new ResourceNotFoundError(uri)
  const operation = ofAgent[name as keyof typeof ofAgent]
  return operation.run(context, operation.parse({ agentId }) as never)
}

async function signing({ trading: chain }: Context): Promise<unknown> {
  const domainOf = { abi: domainAbi, functionName: 'eip712Domain' } as const
  const { results } = await read(chain, [
    { address: chain.contracts.AgentRegistry, ...domainOf },
    { address: chain.trading.TradeRouter, ...domainOf },
  ] as const)
  const domains = { AgentRegistry: toDomain(must(results[0])), TradeRouter: toDomain(must(results[1])) }
  const signedFor = (contract: keyof typeof domains, primaryTypes: readonly PrimaryType[]) =>
    primaryTypes.map(primaryType => ({ contract, ...presentEip712(domains[contract], primaryType) }))
  const exits = [
    { triggerType: 0, triggerBps: -800n, exitBps: 10_000 },
    { triggerType: 1, triggerBps: 1500n, exitBps: 10_000 },
  ]
  return {
    how: 'Sign with eth_signTypedData_v4 (65 bytes r, s, v). Every quote answers typedData that is ready to sign.',
    messages: [
      ...signedFor('AgentRegistry', ['SelfRegister', 'LinkERC8004']),
      ...signedFor('TradeRouter', ['OpenPosition', 'AddToPosition', 'ReducePosition', 'UpdateExitLadder']),
    ],
    units: 'usdcAmount is signed in USDC base units (6 decimals); deadline in Unix seconds; nonce as in the quote.',
    exitsHash: {
      recipe:
        'keccak256(abi.encode(bytes32[] ruleHashes)), each keccak256(abi.encode(uint8 triggerType, int256 triggerBps, uint16 exitBps)), in order; triggerType 0 StopLoss with negative triggerBps, 1 TakeProfit with positive.',
      example: {
        exits: exits.map(rule => ({ ...rule, triggerBps: Number(rule.triggerBps) })),
        exitsHash: hashExits(exits),
      },
    },
  }
}
