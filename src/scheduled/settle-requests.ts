import { type Address, encodeFunctionData, keccak256, stringToBytes, zeroAddress } from 'viem'
import { requestQueueAbi } from '../../contracts-abi/request-queue.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { mandateVault, requestQueue } from '../chain/contracts.ts'
import { provenTokensOf, withHeldOrNewestPrices } from '../chain/newest-prices.ts'
import { call, optional, readTree, type ValuesOf } from '../chain/read-tree.ts'
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
 * logged. `seen` are the values of `queueCalls`, `timeOf` returns the present time in Unix seconds.
 */
export async function settleRequests(
  context: Context,
  seen: ValuesOf<ReturnType<typeof queueCalls>>,
  timeOf = nowAt,
): Promise<void> {
  if (context.config.oracleUpdaterKey === undefined) return
  const { chain, updater } = context
  const queues = await waitingQueues(chain, seen)
  if (queues.length === 0) return
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
      // One attempt a minute at most.
      digest: keccak256(stringToBytes(`settlement of vault requests ${chain.id} ${queue} ${minute}`)),
      kind: 'vaultRequests',
      by: { as: 'service', task: `requests:${queue}` },
      groupNonce: `${minute}`,
      deadline: now + DEADLINE_SECONDS,
      call: { to: queue, data: encodeFunctionData({ abi: requestQueueAbi, functionName: 'settle', args: PAGE }) },
      prices: priceNeedOf(chain, tokens),
    })
    if (outcome.state !== 'mined') logEvent('requests not settled', { state: outcome.state, queue })
  }
}

const queueOf = ({ memory: { requestQueues } }: Chain, vault: Address) => ({
  vault,
  queue: optional(call(mandateVault(vault), 'requestQueue', [])),
  known: requestQueues.get(vault),
  heads: optional(call(requestQueue(requestQueues.get(vault) ?? zeroAddress), 'heads', [])),
})

/** Returns calls that read the queues of the vaults, and the requests of those that were seen before. */
export function queueCalls(chain: Chain) {
  const expected = chain.memory.registryEntries?.vaults ?? Object.values(chain.vaults)
  return { list: vaultListCalls(chain, expected), queues: expected.map(vault => queueOf(chain, vault)) }
}

/** Returns the queues in which requests wait. One that was not seen before may have requests. */
async function waitingQueues(chain: Chain, { list, queues }: ValuesOf<ReturnType<typeof queueCalls>>) {
  const vaults = await listedVaults(chain, list)
  const unread = vaults.filter(vault => !queues.some(known => known.vault === vault))
  const unreadCalls = unread.map(vault => queueOf(chain, vault))
  const others = unread.length === 0 ? [] : (await readTree(chain, unreadCalls)).values
  return [...queues, ...others].flatMap(({ vault, queue = zeroAddress, known, heads }) => {
    if (queue === zeroAddress || !vaults.includes(vault)) return []
    chain.memory.requestQueues.set(vault, queue)
    const [nextDeposit, deposits, nextRedemption, redemptions] = (known === queue && heads) || [0n, 1n, 0n, 1n]
    return nextDeposit < deposits || nextRedemption < redemptions ? [{ vault, queue }] : []
  })
}
