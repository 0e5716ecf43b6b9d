import { type Address, encodeAbiParameters, encodeFunctionData, keccak256, zeroAddress } from 'viem'
import { requestQueueAbi } from '../../contracts-abi/request-queue.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { mandateVault, requestQueue } from '../chain/contracts.ts'
import { provenTokensOf, withHeldOrNewestPrices } from '../chain/newest-prices.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { listedVaults, vaultListCalls } from '../chain/read-vaults-and-tokens.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'

/** Requests of each kind that one transaction looks at, which bounds its gas; the others follow in the next minute. */
const PAGE = [5n, 5n] as const
const MINUTE_SECONDS = 60n
const DEADLINE_SECONDS = 60n

/**
 * Settles the requests of each vault whose prices are newer than they are, from the updater's account: any account may.
 * A settlement is sent only if a simulation of it pays a request or passes a cancelled one. An attempt that fails is
 * logged. `timeOf` returns the present time in Unix seconds. Returns the block that it has read.
 */
export async function settleRequests(context: Context, timeOf = nowAt): Promise<Block | undefined> {
  if (context.config.oracleUpdaterKey === undefined) return undefined
  const { chain, updater } = context
  const { queues, block: seen } = await readWaitingQueues(chain)
  if (queues.length === 0) return seen
  const held = await Promise.all(queues.map(({ vault }) => provenTokensOf(chain, vault)))
  // The calls run in this order, so the second heads are those after the settlement.
  const { block, values } = await readTree(
    await withHeldOrNewestPrices(chain, held.flat()),
    queues.map(({ queue }, index) => ({
      queue,
      tokens: held[index] ?? [],
      before: optional(call(requestQueue(queue), 'heads', [])),
      settled: optional(call(requestQueue(queue), 'settle', PAGE)),
      after: optional(call(requestQueue(queue), 'heads', [])),
    })),
  )
  const now = timeOf(block)
  const minute = now / MINUTE_SECONDS
  for (const { queue, tokens, before, settled, after } of values) {
    const isPaidInPart = settled !== undefined && settled[1] > 0n
    if (`${before}` === `${after}` && !isPaidInPart) continue
    const outcome = await updater.relay({
      digest: digestOf(chain.id, queue, minute),
      kind: 'vaultRequests',
      by: { as: 'service', task: `requests:${queue}` },
      groupNonce: `${minute}`,
      deadline: now + DEADLINE_SECONDS,
      call: { to: queue, data: encodeFunctionData({ abi: requestQueueAbi, functionName: 'settle', args: PAGE }) },
      prices: priceNeedOf(chain, tokens),
    })
    if (outcome.state !== 'mined') logEvent('requests not settled', { state: outcome.state, queue })
  }
  return block
}

/**
 * Reads the queues in which requests wait, with one call if vaults and queues are those that were last seen. One that
 * was not may have requests.
 */
async function readWaitingQueues(
  chain: Chain,
): Promise<{ queues: { vault: Address; queue: Address }[]; block: Block }> {
  const { registryEntries, requestQueues } = chain.memory
  const queueOf = (vault: Address) => ({
    vault,
    queue: optional(call(mandateVault(vault), 'requestQueue', [])),
    known: requestQueues.get(vault),
    heads: optional(call(requestQueue(requestQueues.get(vault) ?? zeroAddress), 'heads', [])),
  })
  const expected = registryEntries?.vaults ?? Object.values(chain.vaults)
  const { block, values } = await readTree(chain, {
    list: vaultListCalls(chain, expected),
    queues: expected.map(queueOf),
  })
  const vaults = await listedVaults(chain, values.list)
  const unread = vaults.filter(vault => !expected.includes(vault))
  const others = unread.length === 0 ? [] : (await readTree(chain, unread.map(queueOf))).values
  const queues = [...values.queues, ...others].flatMap(({ vault, queue = zeroAddress, known, heads }) => {
    if (queue === zeroAddress || !vaults.includes(vault)) return []
    requestQueues.set(vault, queue)
    const [nextDeposit, deposits, nextRedemption, redemptions] = (known === queue && heads) || [0n, 1n, 0n, 1n]
    return nextDeposit < deposits || nextRedemption < redemptions ? [{ vault, queue }] : []
  })
  return { queues, block }
}

/** Names one attempt for a queue, so that it is made once a minute at most. */
const digestOf = (chainId: number, queue: Address, minute: bigint) =>
  keccak256(
    encodeAbiParameters(
      [{ type: 'string' }, { type: 'uint256' }, { type: 'address' }, { type: 'uint256' }],
      ['settlement of vault requests', BigInt(chainId), queue, minute],
    ),
  )
