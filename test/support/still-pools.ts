import { createTestClient, http, publicActions } from 'viem'
import { deployment } from './surfaces.ts'

const node = createTestClient({ mode: 'anvil', transport: http(deployment.rpcUrl) }).extend(publicActions)

/** Runs work during which no pool follows the oracle's price: the market maker cannot pay for a transaction. */
export async function whilePoolsStay(work: () => Promise<unknown>): Promise<void> {
  const { address } = deployment.accounts.marketMaker
  const value = await node.getBalance({ address })
  await node.setBalance({ address, value: 0n })
  try {
    await work()
  } finally {
    await node.setBalance({ address, value })
  }
}
