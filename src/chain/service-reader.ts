import {
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  decodeFunctionResult,
  zeroAddress,
} from 'viem'
import { serviceReaderAbi } from '../../contracts-abi/service-reader.ts'
import { logEvent } from '../log.ts'
import { RefusedByNode, unreachable } from '../rpc/node-errors.ts'
import { callRequest } from '../rpc/requests.ts'
import type { Block, Chain } from './chain.ts'
import { encodeCall } from './multicall.ts'
import { serviceReaderCode } from './service-reader-bytecode.ts'

type Functions = ContractFunctionName<typeof serviceReaderAbi>
type Mutability = 'nonpayable'
type Args<name extends Functions> =
  ContractFunctionArgs<typeof serviceReaderAbi, Mutability, name> extends readonly [unknown, ...infer rest]
    ? rest
    : never
type Answers<name extends Functions> =
  ContractFunctionReturnType<typeof serviceReaderAbi, Mutability, name> extends readonly [unknown, ...infer rest]
    ? rest
    : never

// "service reader": nothing is there, and for the length of a call the reader is.
const READER = '0x7365727669636520726561646572000000000000'

/**
 * Calls a function of contracts/src/reader/ServiceReader.sol, whose code an `eth_call` lends to an address: one round
 * trip, so every value is of one block, and on `latest`, so the node needs no history.
 * Throws CHAIN_UNREACHABLE when the node does not answer, takes no state override, or answers for another chain.
 */
export async function askReader<const name extends Functions>(
  chain: Chain,
  functionName: name,
  ...args: Args<name>
): Promise<{ block: Block; answers: Answers<name> }> {
  const calldata = encodeCall(serviceReaderAbi, functionName, [contractsOf(chain), ...args] as never)
  const request = callRequest({ to: READER, data: calldata }, 'latest', { [READER]: { code: serviceReaderCode } })
  const data = await chain.rpc.read(request).catch(error => {
    if (error.cause instanceof RefusedByNode) logRefusedRead(chain, functionName, `error ${error.cause.code}`)
    throw error
  })
  if (data === '0x') {
    logRefusedRead(chain, functionName, 'the node ignores the state override')
    throw unreachable('the node ignores the state override')
  }
  const [at, ...answers] = decodeFunctionResult({ abi: serviceReaderAbi, functionName, data } as never) as unknown as [
    Block & { chainId: bigint },
    ...Answers<name>,
  ]
  if (at.chainId !== BigInt(chain.id)) throw unreachable(`the node is on chain ${at.chainId}`)
  return { block: { number: at.number, timestamp: at.timestamp }, answers: answers as Answers<name> }
}

function contractsOf({ contracts, trading }: Chain) {
  return {
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
  }
}

/** Logs that a node returned an error to a read, because then it is not set up for this service. */
function logRefusedRead({ id }: Chain, functionName: string, problem: string): void {
  logEvent('node refused the read', { chainId: id, functionName, problem })
}
