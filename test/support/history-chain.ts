import type { TestProject } from 'vitest/node'
import { provideDevnet } from './devnet-chain.ts'

/** Starts a chain that keeps its states, so that tests can reorg it. */
export default async function setup(project: TestProject) {
  return provideDevnet(project, { mineEveryMs: 60 }, ({ marketMaker }) => {
    marketMaker.pause() // reorgs would drop its trades, and the amounts in these tests move no pool
  })
}
