import type { TestProject } from 'vitest/node'
import { startDevnet } from '../../devnet/index.ts'

/** The history tests' own chain: it keeps its states, so that the tests can take blocks back. */
export default async function setup(project: TestProject) {
  const devnet = await startDevnet({ mineEveryMs: 60 })
  devnet.marketMaker.pause() // its trades would be lost in reorganizations, and the amounts here move no pool
  project.provide('deployment', devnet.deployment)
  return () => devnet.stop()
}
