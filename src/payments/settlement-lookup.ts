import { type Address, encodeEventTopics, erc20Abi, type Hex, pad, parseAbi, toEventSelector } from 'viem'
import { blockNumberRequest, logsRequest, type NodeLog, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

const authorizationAbi = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'])

/** An upper bound for the chains that fees are paid on. */
const MAX_BLOCKS_PER_SECOND = 20n
const MARGIN_BLOCKS = 1_000n

/** The transfer that settles a payment. */
export type ExpectedTransfer = {
  asset: Address
  payer: Address
  /** The nonce of the EIP-3009 authorization. */
  nonce: Hex
  payTo: Address
  amount: bigint
  /** A block at which the authorization was unused. */
  fromBlock: bigint
  /** How long after that block the authorization is valid. */
  validSeconds: bigint
}

/**
 * Returns the transaction that settled a payment; undefined if there is none. EIP-3009 tokens emit the Transfer in the log
 * after AuthorizationUsed. A nonce that was cancelled, or used for another transfer, settles nothing. Throws
 * CHAIN_UNREACHABLE.
 */
export async function findSettlement(rpc: RpcTransport, expected: ExpectedTransfer): Promise<Hex | undefined> {
  const { asset, payer, nonce, fromBlock, validSeconds } = expected
  const newest = BigInt(await rpc.read(blockNumberRequest))
  const last = fromBlock + validSeconds * MAX_BLOCKS_PER_SECOND + MARGIN_BLOCKS
  const range = {
    fromBlock: fromBlock < newest ? fromBlock : newest,
    toBlock: last < newest ? last : newest,
  }
  const topics = [toEventSelector(authorizationAbi[0]), pad(payer), nonce]
  const [used] = await rpc.read(logsRequest({ address: asset, topics }, range))
  if (used === undefined) return undefined
  const receipt = await rpc.read(receiptRequest(used.transactionHash))
  const next = receipt?.logs.find(({ logIndex }) => BigInt(logIndex) === BigInt(used.logIndex) + 1n)
  return next && isTransfer(next, expected) ? used.transactionHash : undefined
}

function isTransfer({ address, topics, data }: NodeLog, { asset, payer, payTo, amount }: ExpectedTransfer): boolean {
  const expected = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from: payer, to: payTo } })
  return (
    address.toLowerCase() === asset.toLowerCase() &&
    topics.length === expected.length &&
    topics.every((topic, index) => topic.toLowerCase() === expected[index]) &&
    BigInt(data) === amount
  )
}
