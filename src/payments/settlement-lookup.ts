import { type Address, encodeEventTopics, erc20Abi, type Hex, pad, parseAbi, toEventSelector } from 'viem'
import { getLogs } from '../rpc/get-logs.ts'
import { blockNumberRequest, type NodeLog, receiptRequest } from '../rpc/requests.ts'
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
 * Returns the transaction that settled one of these payments, which share an asset, and the payment; undefined if there is
 * none. Costs two requests, more if a node limits the range of logs, and one more for each authorization that was used.
 * EIP-3009 tokens emit the Transfer in the log after AuthorizationUsed. A nonce that was cancelled, or used for another
 * transfer, settles nothing. Throws CHAIN_UNREACHABLE.
 */
export async function findSettlement<Expected extends ExpectedTransfer>(
  rpc: RpcTransport,
  payments: readonly Expected[],
): Promise<{ payment: Expected; transaction: Hex } | undefined> {
  const [first] = payments
  if (first === undefined) return undefined
  const newest = BigInt(await rpc.read(blockNumberRequest))
  const starts = payments.map(({ fromBlock }) => fromBlock)
  const ends = payments.map(
    ({ fromBlock, validSeconds }) => fromBlock + validSeconds * MAX_BLOCKS_PER_SECOND + MARGIN_BLOCKS,
  )
  const range = { fromBlock: least([...starts, newest]), toBlock: least([greatest(ends), newest]) }
  const topics = [
    toEventSelector(authorizationAbi[0]),
    [...new Set(payments.map(({ payer }) => pad(payer)))],
    payments.map(({ nonce }) => nonce),
  ]
  for (const used of await getLogs(rpc, { address: first.asset, topics }, range)) {
    const payment = payments.find(
      ({ payer, nonce }) => used.topics[1] === pad(payer).toLowerCase() && used.topics[2] === nonce,
    )
    if (payment === undefined) continue
    const receipt = await rpc.read(receiptRequest(used.transactionHash))
    const next = receipt?.logs.find(({ logIndex }) => BigInt(logIndex) === used.logIndex + 1n)
    if (next && isTransfer(next, payment)) return { payment, transaction: used.transactionHash }
  }
  return undefined
}

const least = (values: readonly bigint[]) => values.reduce((a, b) => (a < b ? a : b))
const greatest = (values: readonly bigint[]) => values.reduce((a, b) => (a > b ? a : b))

function isTransfer({ address, topics, data }: NodeLog, { asset, payer, payTo, amount }: ExpectedTransfer): boolean {
  const expected = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from: payer, to: payTo } })
  return (
    address.toLowerCase() === asset.toLowerCase() &&
    topics.length === expected.length &&
    topics.every((topic, index) => topic.toLowerCase() === expected[index]) &&
    BigInt(data) === amount
  )
}
