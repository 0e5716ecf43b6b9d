import type { TestProject } from 'vitest/node'
import { provideDevnet } from './devnet-chain.ts'

/** Starts an embedded chain whose prices come from signed reports. */
export default async function setup(project: TestProject) {
  return provideDevnet(project, { priceSource: 'reports' })
}
