import { BaseError, createPublicClient, defineChain, HttpRequestError, http, type PublicClient } from 'viem'
import { createChain, type TradingChain } from '../../../../src/chain/configured-chain.ts'
import { type Config, parseConfig } from '../../../../src/config/config.ts'
import { createPriceReports } from '../../../../src/price-providers/data-streams.ts'
import { Failure } from '../failure.ts'
import { namedContracts, readVariables, unsetOfChain, type Variables, type VariablesSource } from './variables.ts'

/** How long a node may take: the logs of a whole deployment are a large response. */
const RPC_TIMEOUT_MS = 20_000
const POLLING_INTERVAL_MS = 100
const MIN_NODE_VERSION = 22

/** A deployment as its variables describe it, and clients of its nodes. */
export type OperatedDeployment = {
  variables: Variables
  config: Config
  chain: TradingChain
  client: PublicClient
  /** Every contract of CONTRACTS, including contracts that the Worker does not need. */
  contracts: Record<string, `0x${string}`>
}

/** Returns the variables that the options name, and what they configure. */
export function readConfig(source: VariablesSource): { variables: Variables; config: OperatedDeployment['config'] } {
  assertNodeVersion()
  const variables = readVariables(source)
  return { variables, config: parseConfig(variables) }
}

/** Returns the deployment that the options name. Nothing is read from its chain yet. Throws `VARIABLES_MISSING`. */
export function openDeployment(source: VariablesSource): OperatedDeployment {
  const { variables, config } = readConfig(source)
  return connectTo(variables, config)
}

/** Returns the deployment of a configuration. Throws `VARIABLES_MISSING` if it has no chain or cannot trade. */
export function connectTo(variables: Variables, config: Config): OperatedDeployment {
  if (config.chain === undefined || config.trading === undefined)
    throw new Failure('usage', `The variables name no deployment: ${whyNone(variables, config)}.`, {
      code: 'VARIABLES_MISSING',
      remedy: 'Pass --vars or --env, or --deployment and --rpc.',
    })
  const chain = createChain(config.chain, config.trading, {
    timeoutMs: RPC_TIMEOUT_MS,
    reports: createPriceReports(config.dataStreams),
  }) as TradingChain
  const { id, rpcUrls, contracts } = config.chain
  const client: PublicClient = createPublicClient({
    chain: defineChain({
      id,
      name: `chain ${id}`,
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
      rpcUrls: { default: { http: rpcUrls } },
      contracts: { multicall3: { address: contracts.Multicall3 } },
    }),
    transport: http(rpcUrls[0], { timeout: RPC_TIMEOUT_MS, batch: true }),
    cacheTime: 0,
    pollingInterval: POLLING_INTERVAL_MS,
  })
  return { variables, config, chain, client, contracts: namedContracts(variables) }
}

function whyNone(variables: Variables, { problems }: Config): string {
  const unset = unsetOfChain(variables).map(name => `${name} is not set`)
  return [...problems, ...unset].join(', ') || 'CONTRACTS lacks the trading contracts'
}

/** The reads of a deployment use functions that Node 20 lacks. */
export function assertNodeVersion(): void {
  const { node } = process.versions
  if (Number(node.split('.')[0]) >= MIN_NODE_VERSION) return
  throw new Failure('usage', `The operator's commands need Node ${MIN_NODE_VERSION} or newer; this is ${node}.`, {
    code: 'NODE_TOO_OLD',
    remedy: 'Use a newer Node.',
  })
}

/** Returns what a node said, or the status of a gateway, without the URL, which may hold a key. */
export function nodeMessage(error: unknown): string {
  const refused = error instanceof BaseError ? error.walk(each => each instanceof HttpRequestError) : null
  const status = (refused as HttpRequestError | null)?.status
  if (status !== undefined) return `it, or a gateway in front of it, responds with the status ${status}.`
  const message =
    error instanceof BaseError ? error.shortMessage : error instanceof Error ? error.message : 'unknown error'
  return message
    .replace(/https?:\/\/\S+/g, '(URL)')
    .split('\n')
    .join(' ')
}
