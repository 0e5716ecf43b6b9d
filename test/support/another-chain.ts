import type { TestProject } from 'vitest/node'
import { provideDevnet } from './devnet-chain.ts'

/** Starts the embedded chain under the id of Arbitrum Sepolia, so that nothing depends on the devnet's own id. */
export default async function setup(project: TestProject) {
  return provideDevnet(project, { chainId: 421614 })
}
