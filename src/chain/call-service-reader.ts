import {
  type AbiParameterToPrimitiveType,
  type Address,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type Hex,
  zeroAddress,
  zeroHash,
} from 'viem'
import { serviceReaderAbi } from '../../contracts-abi/service-reader.ts'
import { serviceReaderCode } from '../../contracts-abi/service-reader-bytecode.ts'
import { Refusal } from '../errors/refusal.ts'
import { logEvent } from '../log.ts'
import { EmptyResult, RefusedByNode, unreachable } from '../rpc/node-errors.ts'
import { codeRequest, readRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'
import { type ArgsOf, encodeCall, tryDecodeResult, typedByAbi } from './encode-and-decode-call.ts'
import { readCurrent } from './read-current.ts'
import { call, readTree } from './read-tree.ts'

type ReaderFunction = ContractFunctionName<typeof serviceReaderAbi>
type Rest<Tuple> = Tuple extends readonly [unknown, ...infer rest] ? rest : never
/** The arguments after the contracts of the chain. */
type ReaderArgs<name extends ReaderFunction> = Rest<ContractFunctionArgs<typeof serviceReaderAbi, 'nonpayable', name>>
type ReaderOutput<name extends ReaderFunction> = Extract<
  (typeof serviceReaderAbi)[number],
  { type: 'function'; name: name }
>['outputs'][number]
/** The return values by their names in the contract; the block is `at`. */
export type ReaderValues<name extends ReaderFunction> = {
  [output in ReaderOutput<name> as output['name']]: AbiParameterToPrimitiveType<output, 'outputs'>
}

/**
 * How a call reaches the reader: at the address of a deployed one, or at an address to which the call adds its code.
 */
type ReaderPath = 'deployed' | 'override'

/** An address without code: "service reader" in ASCII. */
const OVERRIDDEN = '0x7365727669636520726561646572000000000000'
/** How long a reader is not used after its code was missing or another one. */
const DISTRUST_MS = 60_000

/** Deployed readers by chain and address: trusted because their code is ours, or not used until a time (epoch ms). */
const deployedReaders = new Map<string, 'trusted' | number>()

/**
 * Calls a function of contracts/src/reader/ServiceReader.sol: the deployed one if its code is ours, otherwise a state
 * override puts its code at an address for the `eth_call`. All values are of the newest block. Throws
 * CHAIN_UNREACHABLE, also when no node supports state overrides and none is deployed, or when the node is on another
 * chain, and NODES_BEHIND.
 */
export async function callReader<const name extends ReaderFunction>(
  chain: Chain,
  functionName: name,
  ...args: ReaderArgs<name>
): Promise<{ block: Block; values: ReaderValues<name>; path: ReaderPath }> {
  if (chain.carried) return readWithPrices(chain, functionName, ...args)
  const data = encodeCall(
    serviceReaderAbi,
    functionName,
    typedByAbi<ArgsOf<typeof serviceReaderAbi, name>>([contractsOf(chain), ...args]),
  )
  const decode = (returned: Hex) => {
    const decoded = tryDecodeResult(serviceReaderAbi, functionName, { success: true, data: returned })
    if (decoded === undefined) throw unreachable(`the node did not return the result of ${functionName}`)
    const values = readerValues(functionName, decoded)
    const { at: block } = typedByAbi<{ at: Block & { chainId: bigint } }>(values)
    if (block.chainId !== BigInt(chain.id)) throw unreachable(`the node is on chain ${block.chainId}`)
    return {
      block: { number: block.number, timestamp: block.timestamp },
      values,
    }
  }
  return read(chain, data, decode).catch(error => {
    if (error.cause instanceof RefusedByNode) logRefusedRead(chain, functionName, `error ${error.cause.code}`)
    if (error.cause instanceof EmptyResult) logRefusedRead(chain, functionName, 'the node ignores the state override')
    throw error
  })
}

export const readerOverride = { [OVERRIDDEN]: { code: serviceReaderCode } } as const

/** A call of the reader within a tree of calls that has `readerOverride`; `readerValues` names its values. */
export const readerCall = <const name extends ReaderFunction>(
  chain: Chain,
  functionName: name,
  ...args: ReaderArgs<name>
) =>
  call(
    { address: OVERRIDDEN, abi: serviceReaderAbi },
    functionName,
    typedByAbi<ArgsOf<typeof serviceReaderAbi, name>>([contractsOf(chain), ...args]),
  )

/** Calls the reader after the prices that the chain carries, in one `eth_call`. */
async function readWithPrices<const name extends ReaderFunction>(
  chain: Chain,
  functionName: name,
  ...args: ReaderArgs<name>
): Promise<{ block: Block; values: ReaderValues<name>; path: ReaderPath }> {
  // A read without prices finds out whether the deployed reader is ours.
  if (chain.contracts.ServiceReader !== undefined && !deployedReaders.has(keyOf(chain)))
    await callReader({ ...chain, carried: undefined }, functionName, ...args)
  const to = deployedReaders.get(keyOf(chain)) === 'trusted' ? chain.contracts.ServiceReader : undefined
  const read = { ...readerCall(chain, functionName, ...args), ...(to && { address: to }) }
  const simulation = { from: chain.contracts.Multicall3, override: to ? {} : readerOverride }
  const { block, values } = await readTree(chain, { read }, undefined, simulation)
  return { block, values: readerValues(functionName, values.read), path: to ? 'deployed' : 'override' }
}

const keyOf = ({ id, contracts }: Chain) => `${id}:${contracts.ServiceReader}`

/** Names the values that a function of the reader returned in a row. */
export function readerValues<const name extends ReaderFunction>(functionName: name, decoded: unknown) {
  const values = typedByAbi<readonly unknown[]>(decoded)
  const named = namesOf(functionName).map((output, index) => [output, values[index]])
  return typedByAbi<ReaderValues<name>>(Object.fromEntries(named))
}
const namesOf = (functionName: ReaderFunction): readonly string[] =>
  serviceReaderAbi.flatMap(item =>
    item.type === 'function' && item.name === functionName ? item.outputs.map(output => output.name) : [],
  )

/** How quotes are read: the path, and `none` with the reason if no node serves them. */
type ReaderCheck = { path: ReaderPath | 'none'; problem: string | undefined }

/** Makes the read of a quote, for an agent that does not exist. Throws CHAIN_UNREACHABLE if no node responds. */
export async function checkReader(chain: Chain): Promise<ReaderCheck> {
  const [token = zeroAddress] = Object.values(chain.tokens)
  try {
    const { path } = await callReader(chain, 'intentTerms', {
      agentId: 0n,
      token,
      positionId: 0n,
      usdcAmount: 1_000_000n,
      exitBps: 0n,
      orderId: zeroHash,
    })
    return { path, problem: undefined }
  } catch (error) {
    const cause = error instanceof Refusal ? error.cause : undefined
    if (cause instanceof RefusedByNode) return { path: 'none', problem: `error ${cause.code}` }
    if (cause instanceof EmptyResult) return { path: 'none', problem: 'an empty result' }
    throw error
  }
}

async function read<Value extends { block: Block }>(
  chain: Chain,
  data: Hex,
  decode: (returned: Hex) => Value,
): Promise<Value & { path: ReaderPath }> {
  const { contracts, id } = chain
  const to = contracts.ServiceReader
  const key = `${id}:${to}`
  const known = deployedReaders.get(key)
  if (to !== undefined && known !== 'trusted' && Date.now() >= (known ?? 0)) {
    const returned = await readAndVerify(chain, to, data)
    const value = returned && decode(returned)
    if (value && value.block.number >= (chain.minBlock ?? 0n)) return { ...value, path: 'deployed' }
  }
  if (to !== undefined && deployedReaders.get(key) === 'trusted') {
    try {
      return { ...(await readCurrent(chain, readRequest({ to, data }), decode)), path: 'deployed' }
    } catch (error) {
      // A reorg can remove the reader.
      if (!(error instanceof Refusal && error.cause instanceof EmptyResult)) throw error
      deployedReaders.delete(key)
    }
  }
  const request = readRequest({ to: OVERRIDDEN, data }, { override: readerOverride })
  return { ...(await readCurrent(chain, request, decode)), path: 'override' }
}

/** Calls a deployed reader and reads its code in the same request. Returns undefined unless the code is ours. */
async function readAndVerify({ rpc, id }: Chain, to: Address, data: Hex): Promise<Hex | undefined> {
  const responses = await rpc
    .batch(
      [codeRequest(to), readRequest({ to, data })],
      ([code, call]) => code.error === undefined && (code.result !== serviceReaderCode || call.error === undefined),
    )
    .catch(() => undefined)
  if (responses === undefined) return undefined
  const [code, call] = responses
  if (code.result === serviceReaderCode) {
    deployedReaders.set(`${id}:${to}`, 'trusted')
    return call.result
  }
  deployedReaders.set(`${id}:${to}`, Date.now() + DISTRUST_MS)
  const problem = code.result === '0x' ? 'no code' : 'other code than this version of the service'
  logEvent('service reader not used', { chainId: id, address: to, problem })
  return undefined
}

/** Returns the contracts that the reader queries; the zero address stands for one that is not configured. */
const contractsOf = ({ contracts, trading }: Chain) => ({
  agentRegistry: contracts.AgentRegistry,
  vaultTrackRegistry: contracts.VaultTrackRegistry,
  tokenRegistry: contracts.TokenRegistry,
  priceOracle: contracts.PriceOracle,
  tradeRouter: trading?.TradeRouter ?? zeroAddress,
  tradeRouterLens: trading?.TradeRouterLens ?? zeroAddress,
  positionManager: trading?.PositionManager ?? zeroAddress,
  allocationManager: trading?.AllocationManager ?? zeroAddress,
  swapAdapter: contracts.SwapAdapter ?? zeroAddress,
  quoter: contracts.QuoterV2 ?? zeroAddress,
  usdc: contracts.USDC ?? zeroAddress,
})

/** Logs that a node returned an error to a read: its operator has to enable state overrides, or use another node. */
function logRefusedRead({ id }: Chain, functionName: string, problem: string): void {
  logEvent('node refused the read', { chainId: id, functionName, problem })
}
