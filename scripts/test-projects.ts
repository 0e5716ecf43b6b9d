import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The vitest projects, and `contracts` for the Solidity tests, in the order in which they start: those that take long first.
 * A few run at a time, because most of them wait for blocks.
 */
export const projects = [
  'contracts',
  'node',
  'e2e',
  'trading',
  'surfaces',
  'client',
  'history',
  'track record',
  'keeper',
  'lane',
  'protocol only',
]

/** How many projects run at a time. Slow tests are busy instead of waiting, and more of them slow each other down. */
export const maxParallel = { fast: 5, full: 3 }

/** Files that only `npm run test:full` runs. */
export const slowFiles = [
  'test/cli/packed.node.test.ts',
  'test/client/for-agents.test.ts',
  'test/client/packed.test.ts',
  'test/faults/client-faults.node.test.ts',
  'test/conformance/mcp-inspector.node.test.ts',
  'test/conformance/mcp-suite.node.test.ts',
  'test/conformance/openapi.node.test.ts',
  'test/integration/event-streams-load.node.test.ts',
]

const root = join(import.meta.dirname, '..')

/** Files whose tests are larger in `npm run test:full`: more seeds, cases or clients. They ask for the extent. */
export const scaledFiles = globSync('{devnet,test}/**/*.test.ts', { cwd: root }).filter(file =>
  readFileSync(join(root, file), 'utf8').includes("inject('isFull')"),
)
