import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Which tests run: `fast` is `npm test`, `slow` what CI adds to it, `release` the rest, `long` the tests that take
 * minutes to hours at full size, and `selected` the files that a command names.
 */
export type Extent = 'fast' | 'slow' | 'release' | 'long' | 'selected'

/** Their files start processes, browsers and installations. */
const startingProcesses = [['e2e'], ['nodes'], ['cli'], ['walks'], ['recovery', 'faults'], ['node'], ['client']]

/**
 * The processes of a run, each with the vitest projects that it runs one after another, and `contracts` for the
 * Solidity tests. They start in this order: long ones first, after a short one that fills the cache of transformed
 * modules for all. `fast` names every project but those of the lane and of reports, whose files all are in a list
 * below; a file that is in none runs in `npm test`.
 */
export const processes: Record<Exclude<Extent, 'selected'>, string[][]> = {
  fast: [
    ['protocol only'],
    ['contracts'],
    ['trading'],
    ['unit', 'node', 'nodes', 'recovery', 'cli', 'faults'],
    ['surfaces'],
    ['keeper'],
    ['history', 'track record'],
    ['checks'],
    ['reorgs'],
    ['client'],
    ['e2e', 'walks'],
  ],
  slow: [['lane'], ['reports'], ...startingProcesses],
  release: [['report stream'], ['lane'], ...startingProcesses],
  long: [
    ['contracts'],
    ['faults'],
    ['unit', 'node', 'nodes', 'recovery', 'e2e', 'walks'],
    ['track record', 'history', 'reorgs'],
    ['checks', 'keeper', 'reports', 'report stream'],
    ['surfaces'],
    ['client', 'cli'],
  ],
}

/**
 * How many processes run at a time. Most tests of `npm test` wait for blocks; the others are busy and slow each other
 * down.
 */
export const maxParallel = { fast: 5, slow: 3, release: 3, long: 2 }

/** Files that `npm test` leaves to CI, which runs `npm run test:slow`. */
export const slowFiles = [
  'scripts/deploy-worker.test.ts',
  'test/cli/operator.node.test.ts',
  'test/client/examples.test.ts',
  'test/conformance/mcp-clients.node.test.ts',
  'test/e2e/demo.node.test.ts',
  'test/e2e/owner-desk.node.test.ts',
  'test/e2e/pages.node.test.ts',
  'test/e2e/readme.node.test.ts',
  'test/e2e/robinhood.node.test.ts',
  'test/faults/client-faults.node.test.ts',
  'test/faults/faults.node.test.ts',
  'test/faults/kill.node.test.ts',
  'test/integration/bad-nodes.node.test.ts',
  'test/integration/lane-accounts.test.ts',
  'test/integration/lane-alerts.test.ts',
  'test/integration/lane-gas-budgets.test.ts',
  'test/integration/lane-node-faults.test.ts',
  'test/integration/lane-refusals.test.ts',
  'test/integration/lane-relay.test.ts',
  'test/integration/market-symbols.test.ts',
  'test/integration/price-reports.test.ts',
  'test/recovery/recovery-storage.node.test.ts',
  'devnet/devnet.test.ts',
]

/**
 * Files that `npm run test:slow` runs on a chain with ten blocks a second, as a dose of `npm test -- --block-time 100`.
 */
export const fastBlockFiles = ['test/integration/events.test.ts']
export const FAST_BLOCK_MS = '100'

/**
 * Files that CI has no time for. `npm run test:release` runs them, before a release and after a change of what they
 * test.
 */
export const releaseFiles = [
  'test/cli/client-configurations.node.test.ts',
  'test/cli/keys.node.test.ts',
  'test/cli/mcp.node.test.ts',
  'test/cli/packed.node.test.ts',
  'test/cli/trading.node.test.ts',
  'test/client/for-agents.test.ts',
  'test/client/packed.test.ts',
  'test/client/symbols.test.ts',
  'test/conformance/mcp-inspector.node.test.ts',
  'test/conformance/mcp-suite.node.test.ts',
  'test/conformance/openapi.node.test.ts',
  'test/e2e/clock-ahead.node.test.ts',
  'test/e2e/demo-protocol-only.node.test.ts',
  'test/e2e/deployment-rehearsal.node.test.ts',
  'test/e2e/desks.node.test.ts',
  'test/e2e/dev.node.test.ts',
  'test/e2e/docs.node.test.ts',
  'test/e2e/docs-accessibility.node.test.ts',
  'test/e2e/examination.node.test.ts',
  'test/e2e/operators-afternoon.node.test.ts',
  'test/e2e/packed-release.node.test.ts',
  'test/e2e/page-walk.node.test.ts',
  'test/e2e/page-outages.node.test.ts',
  'test/e2e/pages-accessibility.node.test.ts',
  'test/e2e/priced-depositors.node.test.ts',
  'test/e2e/quiet-chain.node.test.ts',
  'test/e2e/rehearsal-fills.node.test.ts',
  'test/e2e/rehearsal.node.test.ts',
  'test/e2e/serve.node.test.ts',
  'test/e2e/visitors.node.test.ts',
  'test/integration/event-streams-load.node.test.ts',
  'test/integration/faulty-surroundings.node.test.ts',
  'test/integration/filtered-transactions.test.ts',
  'test/integration/fast-blocks.node.test.ts',
  'test/integration/frozen-nodes.node.test.ts',
  'test/integration/gas-price.node.test.ts',
  'test/integration/lagging-nodes.node.test.ts',
  'test/integration/lane-chain-faults.test.ts',
  'test/integration/mcp-tasks.node.test.ts',
  'test/integration/monotonic-reads.node.test.ts',
  'test/integration/report-stream.test.ts',
  'test/integration/secrets.node.test.ts',
  'test/providers/providers.node.test.ts',
  'test/recovery/recovery-backup.node.test.ts',
  'test/recovery/recovery-chain.node.test.ts',
  'test/recovery/recovery-deploys-and-keys.node.test.ts',
  'test/recovery/recovery-upgrade.node.test.ts',
  'devnet/attacks.test.ts',
  'devnet/deploy.test.ts',
  'devnet/pool-state.test.ts',
  'devnet/reports.test.ts',
  'devnet/testnet-seed.test.ts',
]

const root = join(import.meta.dirname, '..')

/** Files that test more in `npm run test:long`: other seeds, cases, clients or screens. They ask for the extent. */
export const scaledFiles = () =>
  globSync(['devnet/*.test.ts', 'test/*/*.test.ts'], { cwd: root }).filter(file =>
    readFileSync(join(root, file), 'utf8').includes("inject('isLong')"),
  )
