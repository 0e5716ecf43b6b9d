import {
  type Address,
  decodeEventLog,
  encodeAbiParameters,
  encodeFunctionData,
  getAddress,
  type Hex,
  keccak256,
  type PublicClient,
  toEventSelector,
  zeroHash,
} from 'viem'
import { timelockAbi } from '../../../../contracts-abi/timelock.ts'
import { getLogs } from '../../../../src/rpc/logs.ts'
import { type AddressBook, type AdminCall, decodeCall, encode } from './admin-call.ts'
import type { OperatedDeployment } from './connect.ts'

/** The state of an operation, in the order of TimelockController's enum. */
export const OPERATION_STATES = ['not scheduled', 'waiting', 'ready', 'done'] as const
export type OperationState = (typeof OPERATION_STATES)[number]

type Batch = { targets: Address[]; values: bigint[]; payloads: Hex[]; predecessor: Hex; salt: Hex }

/** A batch of calls of the timelock: done once, as a whole, after its delay. */
export type Operation = {
  timelock: Address
  id: Hex
  state: OperationState
  /** Unix seconds; undefined unless it waits or is ready. */
  readyAt: bigint | undefined
  /** Seconds from scheduling to execution, if it is scheduled now. */
  delaySeconds: bigint
  batch: Batch
}

/** Returns the operation of calls, as the timelock knows it. `leastDelay` replaces a shorter delay of the timelock. */
export async function operationOf(
  client: PublicClient,
  timelock: Address,
  calls: readonly AdminCall[],
  { salt = zeroHash, leastDelay = 0n }: { salt?: Hex; leastDelay?: bigint } = {},
): Promise<Operation> {
  const batch: Batch = {
    targets: calls.map(({ address }) => address),
    values: calls.map(() => 0n),
    payloads: calls.map(encode),
    predecessor: zeroHash,
    salt,
  }
  const at = { address: timelock, abi: timelockAbi } as const
  const [id, minDelay] = await Promise.all([
    client.readContract({ ...at, functionName: 'hashOperationBatch', args: argumentsOf(batch) }),
    client.readContract({ ...at, functionName: 'getMinDelay' }),
  ])
  const delaySeconds = leastDelay > minDelay ? leastDelay : minDelay
  return { ...(await stateOf(client, timelock, id)), timelock, id, delaySeconds, batch }
}

async function stateOf(client: PublicClient, timelock: Address, id: Hex) {
  const at = { address: timelock, abi: timelockAbi } as const
  const [state, timestamp] = await Promise.all([
    client.readContract({ ...at, functionName: 'getOperationState', args: [id] }),
    client.readContract({ ...at, functionName: 'getTimestamp', args: [id] }),
  ])
  return { state: OPERATION_STATES[state] ?? 'not scheduled', readyAt: timestamp > 1n ? timestamp : undefined }
}

const argumentsOf = ({ targets, values, payloads, predecessor, salt }: Batch) =>
  [targets, values, payloads, predecessor, salt] as const

const BATCH = [
  { type: 'address[]' },
  { type: 'uint256[]' },
  { type: 'bytes[]' },
  { type: 'bytes32' },
  { type: 'bytes32' },
] as const

/** Returns the calldata of each step of an operation; it is sent to the timelock. */
export function stepsOf({ batch, delaySeconds, id }: Operation): Record<'schedule' | 'execute' | 'cancel', Hex> {
  const args = argumentsOf(batch)
  const [target] = batch.targets
  const [payload] = batch.payloads
  // Others may schedule one call alone, which has another id and is executed by another function.
  const isSingle = id !== keccak256(encodeAbiParameters(BATCH, args))
  const execute =
    isSingle && target && payload
      ? encodeFunctionData({
          abi: timelockAbi,
          functionName: 'execute',
          args: [target, batch.values[0] ?? 0n, payload, batch.predecessor, batch.salt],
        })
      : encodeFunctionData({ abi: timelockAbi, functionName: 'executeBatch', args })
  return {
    schedule: encodeFunctionData({ abi: timelockAbi, functionName: 'scheduleBatch', args: [...args, delaySeconds] }),
    execute,
    cancel: encodeFunctionData({ abi: timelockAbi, functionName: 'cancel', args: [id] }),
  }
}

const SCHEDULED = toEventSelector('CallScheduled(bytes32,uint256,address,uint256,bytes,bytes32,uint256)')
const SALT = toEventSelector('CallSalt(bytes32,bytes32)')

/** Returns the operations that were scheduled since START_BLOCK, oldest first. Throws CHAIN_UNREACHABLE. */
export async function scheduledOperations(
  chain: OperatedDeployment['chain'],
  client: PublicClient,
  timelock: Address,
): Promise<Operation[]> {
  const found = await getLogs(
    chain.rpc,
    { address: timelock, topics: [[SCHEDULED, SALT]] },
    { fromBlock: chain.startBlock, toBlock: await client.getBlockNumber() },
  )
  const batches = new Map<Hex, Batch & { delay: bigint }>()
  const salts = new Map<Hex, Hex>()
  for (const { topics, data } of found) {
    const { eventName, args } = decodeEventLog({ abi: timelockAbi, data, topics: [...topics] as [Hex, ...Hex[]] })
    if (eventName === 'CallSalt') salts.set(args.id, args.salt)
    if (eventName !== 'CallScheduled') continue
    const batch = args.index === 0n ? undefined : batches.get(args.id)
    batches.set(args.id, {
      targets: [...(batch?.targets ?? []), getAddress(args.target)],
      values: [...(batch?.values ?? []), args.value],
      payloads: [...(batch?.payloads ?? []), args.data],
      predecessor: args.predecessor,
      salt: zeroHash,
      delay: args.delay,
    })
  }
  return Promise.all(
    [...batches].map(async ([id, { delay, ...batch }]) => ({
      ...(await stateOf(client, timelock, id)),
      timelock,
      id,
      delaySeconds: delay,
      batch: { ...batch, salt: salts.get(id) ?? zeroHash },
    })),
  )
}

/** Returns the calls of an operation; undefined for one whose contract or function is unknown. */
export const callsOf = (book: AddressBook, { batch }: Operation): (AdminCall | undefined)[] =>
  batch.targets.map((target, index) => decodeCall(book, target, batch.payloads[index] ?? '0x'))
