import type { TestProject } from 'vitest/node'
import { type DevnetOptions, startDevnet } from '../../devnet/index.ts'

/** Tests mostly wait for blocks, so blocks come faster than in `npm run dev`. */
const BLOCK_MS = 100

/** Starts an embedded chain with the contracts for the files of one project, and stops it after them. */
export default async function setup(project: TestProject) {
  return provideDevnet(project, { chainId: Number(process.env.CHAIN_ID || 31337) })
}

/**
 * Starts a devnet, provides its deployment to the project's tests and returns the teardown. Prints why a chain does not
 * start: vitest may report an error of its own instead.
 */
export async function provideDevnet(project: TestProject, options: DevnetOptions): Promise<() => Promise<void>> {
  const devnet = await startDevnet({ blockMs: BLOCK_MS, ...options }).catch((error: unknown) => {
    console.error(error)
    throw error
  })
  project.provide('deployment', devnet.deployment)
  return () => devnet.stop()
}
