import {
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  zeroAddress,
} from 'viem'
import { serviceReaderAbi } from '../../contracts-abi/service-reader.ts'
import { serviceReaderCode } from '../../contracts-abi/service-reader-bytecode.ts'
import { logEvent } from '../log.ts'
import { EmptyResult, RefusedByNode, unreachable } from '../rpc/node-errors.ts'
import { readRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './configured-chain.ts'
import { type ArgsOf, encodeCall, tryDecodeResult, typedByAbi } from './encode-and-decode-call.ts'

type ReaderFunction = ContractFunctionName<typeof serviceReaderAbi>
type Rest<Tuple> = Tuple extends readonly [unknown, ...infer rest] ? rest : never
/** The arguments after the contracts of the chain. */
type ReaderArgs<name extends ReaderFunction> = Rest<ContractFunctionArgs<typeof serviceReaderAbi, 'nonpayable', name>>
/** The return values after the block. */
export type ReaderValues<name extends ReaderFunction> = Rest<
  ContractFunctionReturnType<typeof serviceReaderAbi, 'nonpayable', name>
>

/** An address without code: "service reader" in ASCII. */
const READER = '0x7365727669636520726561646572000000000000'

/**
 * Calls a function of contracts/src/reader/ServiceReader.sol, which exists only during the `eth_call`: a state override
 * puts its code at an address. All values are of the newest block. Throws CHAIN_UNREACHABLE, also when the node does not
 * support state overrides or is on another chain.
 */
export async function callReader<const name extends ReaderFunction>(
  chain: Chain,
  functionName: name,
  ...args: ReaderArgs<name>
): Promise<{ block: Block; values: ReaderValues<name> }> {
  const data = encodeCall(
    serviceReaderAbi,
    functionName,
    typedByAbi<ArgsOf<typeof serviceReaderAbi, name>>([contractsOf(chain), ...args]),
  )
  const request = readRequest({ to: READER, data }, 'latest', { [READER]: { code: serviceReaderCode } })
  const returned = await chain.rpc.read(request).catch(error => {
    if (error.cause instanceof RefusedByNode) logRefusedRead(chain, functionName, `error ${error.cause.code}`)
    if (error.cause instanceof EmptyResult) logRefusedRead(chain, functionName, 'the node ignores the state override')
    throw error
  })
  const decoded = tryDecodeResult(serviceReaderAbi, functionName, { success: true, data: returned })
  if (decoded === undefined) throw unreachable(`the node did not return the result of ${functionName}`)
  const [block, ...values] = typedByAbi<[Block & { chainId: bigint }, ...ReaderValues<name>]>(decoded)
  if (block.chainId !== BigInt(chain.id)) throw unreachable(`the node is on chain ${block.chainId}`)
  return { block: { number: block.number, timestamp: block.timestamp }, values: typedByAbi(values) }
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
