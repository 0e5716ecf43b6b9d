import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, type Hex, numberToHex, type PublicClient, parseEther } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Account } from '../../devnet/accounts.ts'
import type { FaultEvent } from './plan.ts'
import type { Service } from './service.ts'

/** What an event acts on. */
export type EventTargets = {
  client: PublicClient
  setMining(isOn: boolean): Promise<void>
  service: Service
  executor: Account
  /** The account whose lane is aborted or evicted. */
  lane: Address
  /** Resolves once the registrations are too deep for the reorgs of a plan. */
  settled: Promise<unknown>
  /** Collects the transactions that the harness sends with the service's key. */
  foreign: Set<Hex>
}

const FULL_BALANCE = numberToHex(parseEther('10000'))
const POOL_TIMEOUT_MS = 2_000

/** Triggers an event and resolves when it is over. */
export async function triggerEvent(event: FaultEvent, targets: EventTargets): Promise<void> {
  const { client, setMining, service, executor } = targets
  const rpc = <T = unknown>(method: string, ...params: unknown[]) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: T }>({ method, params })
  switch (event.kind) {
    case 'kill':
      return service.kill()
    case 'abort':
      return service.abort(targets.lane)
    case 'evict':
      return service.evict(targets.lane)
    case 'standstill':
      await setMining(false)
      await sleep(event.ms)
      return setMining(true)
    case 'empty-account':
      await rpc('anvil_setBalance', executor.address, '0x0')
      await sleep(event.ms)
      return refill(client, executor.address)
    case 'fee-spike': {
      const { baseFeePerGas } = await client.getBlock()
      await rpc('anvil_setNextBlockBaseFeePerGas', numberToHex(10n * (baseFeePerGas ?? 0n) + 1n))
      return
    }
    case 'reorg':
      await targets.settled
      await setMining(false)
      await rpc('anvil_reorg', event.depth, [])
      await refill(client, executor.address) // the reorg also removes a balance that was set in the lost blocks
      return setMining(true)
    case 'drop-transaction': {
      const hash = await firstPooled(client, executor.address)
      if (hash) await rpc('anvil_dropTransaction', hash)
      return
    }
    case 'foreign-transaction':
      return sendForeignTransaction(targets)
  }
}

/** Sets the balance of an account to what it had at the start. */
export const refill = async (client: PublicClient, address: Address): Promise<void> => {
  await client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
    method: 'anvil_setBalance',
    params: [address, FULL_BALANCE],
  })
}

/** Waits for a pending transaction of an account. Returns undefined if there is none in time. */
async function firstPooled(client: PublicClient, address: Address): Promise<Hex | undefined> {
  type Content = { pending: Record<string, Record<string, { hash: Hex }>> }
  for (const until = Date.now() + POOL_TIMEOUT_MS; Date.now() < until; await sleep(20)) {
    const { pending } = await client.request<{ Method: string; Parameters: []; ReturnType: Content }>({
      method: 'txpool_content',
      params: [],
    })
    const own = Object.entries(pending).find(([sender]) => sender.toLowerCase() === address.toLowerCase())?.[1]
    const [first] = Object.values(own ?? {})
    if (first) return first.hash
  }
  return undefined
}

/**
 * Sends a zero-value transfer with the executor's key at the next nonce, which replaces a pending transaction there.
 */
async function sendForeignTransaction({ client, executor, foreign }: EventTargets): Promise<void> {
  const account = privateKeyToAccount(executor.privateKey)
  const [nonce, { baseFeePerGas }] = await Promise.all([
    client.getTransactionCount({ address: account.address }),
    client.getBlock(),
  ])
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: client.chain?.id ?? 0,
    nonce,
    to: account.address,
    gas: 21_000n,
    maxFeePerGas: 100n * (baseFeePerGas ?? 1n) + 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 11n,
  })
  // If the service used the nonce first, the event has no effect.
  await client.sendRawTransaction({ serializedTransaction }).then(
    hash => foreign.add(hash),
    () => {},
  )
}
