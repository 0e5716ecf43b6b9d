import type { TestProject } from 'vitest/node'
import { provideDevnet } from './devnet-chain.ts'

/** Starts a chain whose contracts have only the protocol's functions: no trade policy, no capital modes. */
export default async function setup(project: TestProject) {
  return provideDevnet(project, { protocolOnly: true })
}
