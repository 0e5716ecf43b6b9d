import type { Address } from 'viem'
import type { Block, Chain } from './configured-chain.ts'
import { mandateVault, requestQueue } from './contracts.ts'
import { call, optional, readTree } from './read-tree.ts'

/** A deposit or redemption that waits for the next price. `amount` is USDC base units, or share base units. */
export type WaitingRequest = { requestId: bigint; controller: Address; madeAt: bigint; amount: bigint }

export type RequestQueue = {
  address: Address
  /** Requests made before this time settle now, in Unix seconds; 0 if none does. */
  settleableBefore: bigint
  /** In the order in which they settle; at most as many as were asked for. */
  deposits: WaitingRequest[]
  redemptions: WaitingRequest[]
  /** Requests beyond those listed, cancelled ones included. */
  omitted: number
}

/**
 * Reads the queue of a vault, with up to `limit` requests of each kind. The queue is undefined if the vault names none.
 * The vault says where its queue is, so this takes three reads. Throws CHAIN_UNREACHABLE.
 */
export async function readRequestQueue(
  chain: Chain,
  vault: Address,
  limit: number,
): Promise<{ block: Block; queue: RequestQueue | undefined }> {
  const named = await readTree(chain, { queue: optional(call(mandateVault(vault), 'requestQueue', [])) })
  const address = named.values.queue
  if (address === undefined || BigInt(address) === 0n) return { block: named.block, queue: undefined }
  const queue = requestQueue(address)
  const { values } = await readTree(chain, {
    heads: call(queue, 'heads', []),
    settleableBefore: optional(call(queue, 'settleableBefore', [])),
  })
  const [nextDeposit, newDeposit, nextRedeem, newRedeem] = values.heads
  const ids = { deposits: idsFrom(nextDeposit, newDeposit, limit), redemptions: idsFrom(nextRedeem, newRedeem, limit) }
  const { block, values: lists } = await readTree(chain, {
    deposits: ids.deposits.map(id => call(queue, 'depositRequest', [id])),
    redemptions: ids.redemptions.map(id => call(queue, 'redeemRequest', [id])),
  })
  const waiting = (kind: 'deposits' | 'redemptions'): WaitingRequest[] =>
    lists[kind].flatMap(({ controller, madeAt, amount }, index) => {
      const requestId = ids[kind][index] ?? 0n
      return amount === 0n ? [] : [{ requestId, controller, madeAt: BigInt(madeAt), amount }]
    })
  const all = newDeposit - nextDeposit + newRedeem - nextRedeem
  return {
    block,
    queue: {
      address,
      settleableBefore: values.settleableBefore ?? 0n,
      deposits: waiting('deposits'),
      redemptions: waiting('redemptions'),
      omitted: Number(all) - ids.deposits.length - ids.redemptions.length,
    },
  }
}

const idsFrom = (next: bigint, end: bigint, limit: number): bigint[] =>
  Array.from({ length: Math.min(limit, Number(end - next)) }, (_, index) => next + BigInt(index))
