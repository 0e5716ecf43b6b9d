import { setTimeout as sleep } from 'node:timers/promises'
import { type Address, type Hex, numberToHex, type PublicClient, parseEther } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Account } from '../../devnet/accounts.ts'
import type { Event } from './plan.ts'
import type { Service } from './service.ts'

export type Scene = {
  client: PublicClient
  setMining(isOn: boolean): Promise<void>
  service: Service
  executor: Account
  /** Resolves once nothing that the agents need lies in blocks that a reorganisation could take. */
  settled: Promise<unknown>
  /** The transactions that the harness sends with the service's key. */
  foreign: Set<Hex>
}

const WEALTH = numberToHex(parseEther('10000'))
const POOL_PATIENCE_MS = 2_000

/** Lets an event happen and resolves when it is over. */
export async function happen(event: Event, scene: Scene): Promise<void> {
  const { service, executor } = scene
  const rpc = <T = unknown>(method: string, ...params: unknown[]) =>
    scene.client.request<{ Method: string; Parameters: unknown[]; ReturnType: T }>({ method, params })
  switch (event.is) {
    case 'kill':
      return service.kill()
    case 'abort':
      return service.abort(executor.address)
    case 'evict':
      return service.evict(executor.address)
    case 'standstill':
      await scene.setMining(false)
      await sleep(event.ms)
      return scene.setMining(true)
    case 'empty-account':
      await rpc('anvil_setBalance', executor.address, '0x0')
      await sleep(event.ms)
      return enrich(scene.client, executor.address)
    case 'fee-spike': {
      const { baseFeePerGas } = await scene.client.getBlock()
      await rpc('anvil_setNextBlockBaseFeePerGas', numberToHex(10n * (baseFeePerGas ?? 0n) + 1n))
      return
    }
    case 'reorg':
      await scene.settled
      await scene.setMining(false)
      await rpc('anvil_reorg', event.depth, [])
      await enrich(scene.client, executor.address) // a balance that was set belongs to the blocks that are gone
      return scene.setMining(true)
    case 'drop-transaction': {
      const hash = await pooled(scene, executor.address)
      if (hash) await rpc('anvil_dropTransaction', hash)
      return
    }
    case 'foreign-transaction':
      return useKey(scene)
  }
}

export const enrich = async (client: PublicClient, address: Address): Promise<void> => {
  await client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({
    method: 'anvil_setBalance',
    params: [address, WEALTH],
  })
}

/** A transaction of an account that waits for its block. */
async function pooled({ client }: Scene, address: Address): Promise<Hex | undefined> {
  type Content = { pending: Record<string, Record<string, { hash: Hex }>> }
  for (const until = Date.now() + POOL_PATIENCE_MS; Date.now() < until; await sleep(20)) {
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

/** Sends a transfer of nothing with the executor's key at the next nonce, in place of what may wait there. */
async function useKey({ client, executor, foreign }: Scene): Promise<void> {
  const account = privateKeyToAccount(executor.privateKey)
  const [nonce, { baseFeePerGas }] = await Promise.all([
    client.getTransactionCount({ address: account.address }),
    client.getBlock(),
  ])
  const serializedTransaction = await account.signTransaction({
    ...{ type: 'eip1559', chainId: client.chain?.id ?? 0, nonce, to: account.address, gas: 21_000n },
    ...{ maxFeePerGas: 100n * (baseFeePerGas ?? 1n) + 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n },
  })
  // A nonce that has just been used is no fault: then nothing foreign happens.
  await client.sendRawTransaction({ serializedTransaction }).then(
    hash => foreign.add(hash),
    () => {},
  )
}
