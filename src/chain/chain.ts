import { type Hex, parseAbi } from 'viem'
import type { ChainConfig } from '../config.ts'
import type { TradingContracts } from '../environment.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { callRequest } from '../rpc/requests.ts'
import { createTransport, type RpcTransport } from '../rpc/transport.ts'
import { decodeBatch, encodeBatch, type FunctionCall, type Outcome, type Outcomes, outcomeOf } from './multicall.ts'

/** A configured chain: its contracts, and the transport to its nodes. */
export type Chain = Omit<ChainConfig, 'rpcUrls'> & { rpc: RpcTransport; trading: TradingContracts | undefined }

/** A chain whose trading contracts are configured. */
export type TradingChain = Chain & { trading: TradingContracts }

/** The one block that an answer describes; the timestamp is Unix seconds. */
export type Block = { number: bigint; timestamp: bigint }

export const createChain = ({ rpcUrls, ...chain }: ChainConfig, trading: TradingContracts | undefined): Chain => ({
  ...chain,
  trading,
  rpc: createTransport(rpcUrls),
})

const metaAbi = parseAbi([
  'function getBlockNumber() view returns (uint256)',
  'function getCurrentBlockTimestamp() view returns (uint256)',
  'function getChainId() view returns (uint256)',
  'function arbBlockNumber() view returns (uint256)',
])
// On Arbitrum block.number is the parent chain's; the precompile knows the chain's own. It has no code elsewhere.
const ARB_SYS = '0x0000000000000000000000000000000000000064'

/**
 * Reads every call in one `eth_call` (Multicall3), so that all values are of one block, and says which block that was.
 * Without `at` it reads the newest block; with it, exactly that one. A call that reverts is a `failure` in its place.
 * `more` is a list of any length beside a fixed one, so that both keep their types.
 * Throws the refusal CHAIN_UNREACHABLE when the node does not answer or answers for another chain.
 */
export async function read<const Calls extends readonly unknown[], const More extends readonly unknown[] = []>(
  { rpc, contracts, id }: Chain,
  calls: readonly [...Calls],
  at?: Block,
  more?: readonly [...More],
): Promise<{ block: Block; results: Outcomes<Calls>; more: Outcomes<More> }> {
  const meta = { address: contracts.Multicall3, abi: metaAbi } as const
  const wanted = [...calls, ...(more ?? [])] as readonly FunctionCall[]
  const data = encodeBatch([
    { ...meta, functionName: 'getBlockNumber' },
    { ...meta, functionName: 'getCurrentBlockTimestamp' },
    { ...meta, functionName: 'getChainId' },
    { ...meta, address: ARB_SYS, functionName: 'arbBlockNumber' },
    ...wanted,
  ])
  const returned = await rpc.read(callRequest({ to: contracts.Multicall3, data }, at?.number))
  const [number, timestamp, chainId, arbNumber, ...rest] = decoded(returned)
  if (!number?.success || !timestamp?.success || rest.length !== wanted.length)
    throw unreachable('the node answered for other calls')
  if (Number(chainId?.data) !== id) throw unreachable(`the node is on chain ${Number(chainId?.data)}`)
  const isArbitrum = arbNumber?.success && arbNumber.data !== '0x'
  const outcomes = wanted.map(({ abi, functionName }, index) => outcomeOf(abi, functionName, rest[index]))
  return {
    block: { number: BigInt((isArbitrum ? arbNumber : number).data), timestamp: BigInt(timestamp.data) },
    results: outcomes.slice(0, calls.length) as Outcomes<Calls>,
    more: outcomes.slice(calls.length) as Outcomes<More>,
  }
}

function decoded(returned: Hex) {
  try {
    return decodeBatch(returned)
  } catch {
    throw unreachable('the node did not return the result of aggregate3')
  }
}

/** The value of a call that cannot fail on a deployment that is wired as configured. */
export function must<T>(outcome: Outcome<T>): T {
  if (outcome.status === 'failure')
    throw new Error('A configured contract refused a read that never fails', { cause: outcome.error })
  return outcome.result
}

/** The value of a call, or undefined when it reverted. */
export const maybe = <T>(outcome: Outcome<T>): T | undefined =>
  outcome.status === 'success' ? outcome.result : undefined
