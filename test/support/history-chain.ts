import type { TestProject } from 'vitest/node'
import { startDevnet } from '../../devnet/index.ts'

/** A chain for the history tests alone, because they cause reorgs. */
export default async function setup(project: TestProject) {
  const devnet = await startDevnet({ mineEveryMs: 60 })
  devnet.marketMaker.pause() // reorgs would undo its trades; the amounts of these tests move no pool
  project.provide('deployment', devnet.deployment)
  return () => devnet.stop()
}
