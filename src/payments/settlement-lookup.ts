import {
  type Address,
  decodeFunctionResult,
  encodeEventTopics,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  pad,
  parseAbi,
  toEventSelector,
} from 'viem'
import { type EventLog, getLogs } from '../rpc/logs.ts'
import { unreachable } from '../rpc/node-errors.ts'
import { blockNumberRequest, type NodeLog, readRequest, receiptRequest } from '../rpc/requests.ts'
import type { RpcTransport } from '../rpc/transport.ts'

const authorizationAbi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])
const [usedEvent, canceledEvent] = authorizationAbi

/** An upper bound for the chains that fees are paid on. */
const MAX_BLOCKS_PER_SECOND = 20n
const MARGIN_BLOCKS = 1_000n

/** The transfer that settles a payment. */
type ExpectedTransfer = {
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
 * Returns the transaction that settled one of these payments, which share an asset, and the payment; undefined if there
 * is none. Costs two requests, more if a node limits the range of logs, and one more for each authorization that was
 * used. EIP-3009 tokens emit the Transfer in the log after AuthorizationUsed. A nonce that was cancelled, or used for
 * another transfer, settles nothing. Throws CHAIN_UNREACHABLE.
 */
export async function findSettlement<Expected extends ExpectedTransfer>(
  rpc: RpcTransport,
  payments: readonly Expected[],
): Promise<{ payment: Expected; transaction: Hex } | undefined> {
  for (const use of await readUses(rpc, payments, [usedEvent])) {
    const { payment, transactionHash: transaction } = use
    if ((await isSettlement(rpc, use)) === true) return { payment, transaction }
  }
  return undefined
}

/** What became of an authorization. */
type AuthorizationUse =
  | { kind: 'settled'; transaction: Hex }
  /** It was cancelled, or used for another transfer. */
  | { kind: 'used otherwise' }
  | { kind: 'unused' }

/**
 * Returns how the authorization of a payment was used up to a block. State and logs must agree, so that a node that
 * lacks blocks or logs decides nothing. Throws CHAIN_UNREACHABLE, also if they disagree.
 */
export async function findUse(rpc: RpcTransport, payment: ExpectedTransfer, block: bigint): Promise<AuthorizationUse> {
  const isUsed = await readAuthorizationState(rpc, payment, block)
  const events = [usedEvent, canceledEvent]
  let [use] = await readUses(rpc, [payment], events)
  // It can also be cancelled after its validity.
  if (isUsed && use === undefined) [use] = await readUses(rpc, [payment], events, block)
  if (isUsed !== (use !== undefined)) throw unreachable('logs and state of an authorization disagree')
  if (use === undefined) return { kind: 'unused' }
  const settles = await isSettlement(rpc, use)
  if (settles === undefined) throw unreachable('the node has the log of an authorization, but not its receipt')
  return settles ? { kind: 'settled', transaction: use.transactionHash } : { kind: 'used otherwise' }
}

/** Tells whether an authorization was used or cancelled by the end of a block. A node without the block fails. */
async function readAuthorizationState(
  rpc: RpcTransport,
  { asset, payer, nonce }: ExpectedTransfer,
  block: bigint,
): Promise<boolean> {
  const functionName = 'authorizationState'
  const call = encodeFunctionData({ abi: authorizationAbi, functionName, args: [payer, nonce] })
  const data = await rpc.read(readRequest({ to: asset, data: call }, { block }))
  return decodeFunctionResult({ abi: authorizationAbi, functionName, data })
}

/**
 * Returns the logs that show how the authorizations of payments were used, with the payments, which share an asset.
 * Reads the blocks in which they are valid, or those up to `lastBlock`.
 */
async function readUses<Expected extends ExpectedTransfer>(
  rpc: RpcTransport,
  payments: readonly Expected[],
  events: readonly (typeof usedEvent | typeof canceledEvent)[],
  lastBlock?: bigint,
): Promise<(EventLog & { payment: Expected })[]> {
  const [first] = payments
  if (first === undefined) return []
  const newest = BigInt(await rpc.read(blockNumberRequest))
  const starts = payments.map(({ fromBlock }) => fromBlock)
  const ends = payments.map(
    ({ fromBlock, validSeconds }) => fromBlock + validSeconds * MAX_BLOCKS_PER_SECOND + MARGIN_BLOCKS,
  )
  const range = { fromBlock: least([...starts, newest]), toBlock: least([lastBlock ?? greatest(ends), newest]) }
  const topics = [
    events.map(event => toEventSelector(event)),
    [...new Set(payments.map(({ payer }) => pad(payer)))],
    payments.map(({ nonce }) => nonce),
  ]
  const logs = await getLogs(rpc, { address: first.asset, topics }, range)
  return logs.flatMap(log => {
    const payment = payments.find(
      ({ payer, nonce }) => log.topics[1] === pad(payer).toLowerCase() && log.topics[2] === nonce,
    )
    return payment ? [{ ...log, payment }] : []
  })
}

/**
 * Tells whether a use of an authorization is the transfer that settles its payment; undefined if there is no receipt.
 */
async function isSettlement(
  rpc: RpcTransport,
  { payment, transactionHash, logIndex }: EventLog & { payment: ExpectedTransfer },
): Promise<boolean | undefined> {
  const receipt = await rpc.read(receiptRequest(transactionHash))
  const next = receipt?.logs.find(log => BigInt(log.logIndex) === logIndex + 1n)
  return receipt ? next !== undefined && isTransfer(next, payment) : undefined
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
