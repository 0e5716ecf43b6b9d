import {
  BaseError,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  decodeFunctionResult,
  zeroAddress,
} from 'viem'
import { serviceReaderAbi } from '../../contracts-abi/service-reader.ts'
import { type Block, type Chain, unreachable } from './client.ts'
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
  const { data } = await chain.client
    .call({
      to: READER,
      data: encodeCall(serviceReaderAbi, functionName, [contractsOf(chain), ...args] as never),
      stateOverride: [{ address: READER, code: serviceReaderCode }],
    })
    .catch(error => {
      logRefusal(chain, functionName, error)
      throw unreachable(error)
    })
  if (data === undefined) throw unreachable(logged(chain, functionName, 'it ignores the state override'))
  const [at, ...answers] = decodeFunctionResult({ abi: serviceReaderAbi, functionName, data } as never) as unknown as [
    Block & { chainId: bigint },
    ...Answers<name>,
  ]
  if (at.chainId !== BigInt(chain.id)) throw unreachable(new Error(`the node is on chain ${at.chainId}`))
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

/** A node that answers no to a read is not set up for this service: its operator finds that in the log. */
function logRefusal(chain: Chain, functionName: string, error: unknown) {
  const answered =
    error instanceof BaseError && error.walk(cause => typeof (cause as { code?: unknown }).code === 'number')
  if (answered)
    logged(chain, functionName, `it answers with the error ${(answered as unknown as { code: number }).code}`)
}

function logged({ id }: Chain, functionName: string, problem: string): Error {
  const message = `the node refused the read ${functionName}: ${problem}`
  console.error(JSON.stringify({ level: 'error', chainId: id, message }))
  return new Error(message)
}
