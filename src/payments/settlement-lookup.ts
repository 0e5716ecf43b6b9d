import { type Address, encodeEventTopics, erc20Abi, type Hex, pad, parseAbi, toEventSelector } from 'viem'
import { blockNumberRequest, logsRequest, type NodeLog, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

const authorizationAbi = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'])

/** No chain that is paid on makes more blocks than this in a second. */
const BLOCKS_PER_SECOND = 20n
const MARGIN_BLOCKS = 1_000n

export type Sought = {
  asset: Address
  payer: Address
  nonce: Hex
  payTo: Address
  amount: bigint
  /** A block at or before which the authorization was unused. */
  fromBlock: bigint
  /** For how long after that block it can be used. */
  seconds: bigint
}

/**
 * Finds the transaction that moved a payment: the transfer to the payee that its asset makes on using the very
 * authorization (the log after AuthorizationUsed, as EIP-3009 tokens write them). Undefined while there is none: a nonce
 * that was cancelled, or used for another transfer, paid nothing. Throws CHAIN_UNREACHABLE.
 */
export async function findTransfer(rpc: RpcTransport, sought: Sought): Promise<Hex | undefined> {
  const newest = BigInt(await rpc.read(blockNumberRequest))
  const last = sought.fromBlock + sought.seconds * BLOCKS_PER_SECOND + MARGIN_BLOCKS
  const range = {
    fromBlock: sought.fromBlock < newest ? sought.fromBlock : newest,
    toBlock: last < newest ? last : newest,
  }
  const topics = [toEventSelector(authorizationAbi[0]), pad(sought.payer), sought.nonce]
  const [used] = await rpc.read(logsRequest({ address: sought.asset, topics }, range))
  if (used === undefined) return undefined
  const receipt = await rpc.read(receiptRequest(used.transactionHash))
  const next = receipt?.logs.find(({ logIndex }) => BigInt(logIndex) === BigInt(used.logIndex) + 1n)
  return next && isTransfer(next, sought) ? used.transactionHash : undefined
}

function isTransfer({ address, topics, data }: NodeLog, { asset, payer, payTo, amount }: Sought): boolean {
  const expected = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from: payer, to: payTo } })
  return (
    address.toLowerCase() === asset.toLowerCase() &&
    topics.length === expected.length &&
    topics.every((topic, index) => topic.toLowerCase() === expected[index]) &&
    BigInt(data) === amount
  )
}
