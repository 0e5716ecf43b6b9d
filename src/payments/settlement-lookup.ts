import {
  type Address,
  encodeEventTopics,
  erc20Abi,
  type Hex,
  numberToHex,
  type PublicClient,
  pad,
  parseAbi,
} from 'viem'

type RawLog = { address: Address; topics: Hex[]; data: Hex; logIndex: Hex; transactionHash: Hex }
type RawReceipt = { logs: RawLog[] } | null

const authorizationAbi = parseAbi(['event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)'])
const [AUTHORIZATION_USED] = encodeEventTopics({ abi: authorizationAbi, eventName: 'AuthorizationUsed' })

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
 * that was cancelled, or used for another transfer, paid nothing. Throws when the node does not answer.
 */
export async function findTransfer(client: PublicClient, sought: Sought): Promise<Hex | undefined> {
  const request = client.request as (args: unknown) => Promise<unknown>
  const newest = BigInt((await request({ method: 'eth_blockNumber' })) as Hex)
  const last = sought.fromBlock + sought.seconds * BLOCKS_PER_SECOND + MARGIN_BLOCKS
  const filter = {
    address: sought.asset,
    topics: [AUTHORIZATION_USED, pad(sought.payer), sought.nonce],
    fromBlock: numberToHex(sought.fromBlock < newest ? sought.fromBlock : newest),
    toBlock: numberToHex(last < newest ? last : newest),
  }
  const [used] = (await request({ method: 'eth_getLogs', params: [filter] })) as RawLog[]
  if (used === undefined) return undefined
  const receipt = (await request({
    method: 'eth_getTransactionReceipt',
    params: [used.transactionHash],
  })) as RawReceipt
  const next = receipt?.logs.find(({ logIndex }) => BigInt(logIndex) === BigInt(used.logIndex) + 1n)
  return next && isTransfer(next, sought) ? used.transactionHash : undefined
}

function isTransfer({ address, topics, data }: RawLog, { asset, payer, payTo, amount }: Sought): boolean {
  const expected = encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from: payer, to: payTo } })
  return (
    address.toLowerCase() === asset.toLowerCase() &&
    topics.length === expected.length &&
    topics.every((topic, index) => topic.toLowerCase() === expected[index]) &&
    BigInt(data) === amount
  )
}
