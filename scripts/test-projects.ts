import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The processes of a run, each with the vitest projects that it runs one after another, and `contracts` for the Solidity
 * tests. They start in this order: those that take long first. A few run at a time, because most of them wait for blocks.
 */
export const processes = [
  ['unit', 'node'],
  ['faults'],
  ['trading'],
  ['lane'],
  ['checks'],
  ['surfaces'],
  ['e2e'],
  ['keeper', 'protocol only'],
  ['history', 'track record'],
  ['contracts'],
  ['client'],
]

/** How many processes run at a time. Slow tests are busy instead of waiting, and more of them slow each other down. */
export const maxParallel = { fast: 6, full: 3 }

/** Files that only `npm run test:full` runs. */
export const slowFiles = [
  'scripts/deploy-worker.test.ts',
  'test/cli/keys.node.test.ts',
  'test/cli/mcp.node.test.ts',
  'test/cli/operator.node.test.ts',
  'test/cli/packed.node.test.ts',
  'test/cli/trading.node.test.ts',
  'test/client/for-agents.test.ts',
  'test/client/packed.test.ts',
  'test/faults/client-faults.node.test.ts',
  'test/conformance/mcp-inspector.node.test.ts',
  'test/conformance/mcp-suite.node.test.ts',
  'test/conformance/openapi.node.test.ts',
  'test/e2e/demo-protocol-only.node.test.ts',
  'test/e2e/desks.node.test.ts',
  'test/integration/event-streams-load.node.test.ts',
  'test/e2e/operators-afternoon.node.test.ts',
  'test/e2e/serve.node.test.ts',
  'test/integration/secrets.node.test.ts',
  'test/recovery/recovery-chain.node.test.ts',
  'test/recovery/recovery-deploys-and-keys.node.test.ts',
  'test/recovery/recovery-storage.node.test.ts',
  'devnet/attacks.test.ts',
  'devnet/deploy.test.ts',
  'test/cli/client-configurations.node.test.ts',
  'test/client/examples.test.ts',
  'test/conformance/mcp-clients.node.test.ts',
  'test/e2e/docs.node.test.ts',
  'test/e2e/demo.node.test.ts',
  'test/e2e/readme.node.test.ts',
  'test/e2e/docs-accessibility.node.test.ts',
  'test/e2e/pages-accessibility.node.test.ts',
  'test/faults/kill.node.test.ts',
  'test/integration/bad-nodes.node.test.ts',
  'test/integration/history-property.test.ts',
  'test/integration/leaderboard-property.test.ts',
  'test/integration/protocol-only.test.ts',
  'test/integration/weekly-feedback.test.ts',
]

const root = join(import.meta.dirname, '..')

/** Files that test more in `npm run test:full`: other seeds, cases, clients or screens. They ask for the extent. */
export const scaledFiles = globSync('{devnet,test}/**/*.test.ts', { cwd: root }).filter(file =>
  readFileSync(join(root, file), 'utf8').includes("inject('isFull')"),
)
