import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cloudflareTest } from '@cloudflare/vitest-plugin'
import type { Plugin } from 'vite'
import type { ProvidedContext } from 'vitest'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import type { Deployment } from './devnet/deployment.ts'
import { tenfoldGas, workerVars } from './devnet/worker-vars.ts'
import { processes, releaseFiles, slowFiles } from './scripts/test-projects.ts'
import { laneVars } from './test/support/lane-chain.ts'

// `unit` tests pure rules in Node, without a chain or a Worker. Most other projects have a chain of their own, because
// tests change prices, pauses and the clock: a global setup starts it and provides it as `deployment`. Within a
// project, files run one after another.

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>
type Project = TestOptions & { name: string; include: string[] }
type Inject = <Key extends keyof ProvidedContext>(key: Key) => ProvidedContext[Key]

/** Submissions may take longer than on a machine that does nothing else. `bad-nodes` tests the default. */
const PATIENT_MS = '15000'

// Set by scripts/test.ts.
const extent = process.env.TEST_EXTENT
const common = {
  provide: { isLong: extent === 'long' },
  // Ends a test that hangs. It bounds no test that works, on a machine that is busy with something else too.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  // How long `expect.poll` waits for a condition by default, which a busy machine meets late.
  expect: { poll: { timeout: 60_000 } },
}
const excluded = extent === 'fast' ? [...slowFiles, ...releaseFiles] : []

/**
 * Packages that the Worker and its tests import. They are bundled together, so each module of theirs, and its state,
 * exists once: a package or path that is missing here would bring another copy of what it imports.
 */
const bundled = [
  'viem',
  'viem/accounts',
  'viem/actions',
  'viem/utils',
  'zod',
  'zod/v4',
  'hono',
  'hono/cors',
  'hono/http-exception',
  'hono/route',
  'hono/secure-headers',
  '@hono/zod-openapi',
  '@modelcontextprotocol/server',
  '@modelcontextprotocol/client',
  '@noble/curves/secp256k1',
  '@x402/core/client',
  '@x402/core/facilitator',
  '@x402/evm',
  '@x402/evm/exact/client',
  '@x402/evm/exact/facilitator',
  '@x402/evm/v1',
  'eventsource-parser',
  'fast-check',
  'ipaddr.js',
  'd3-dsv',
  'standardwebhooks',
]

/**
 * Gives all projects one folder of bundles, because the modules in their shared cache name the bundles that they
 * import. Drops the source maps of packages, which are larger than the code that workerd needs.
 */
const sharedBundles: Plugin = {
  name: 'shared-bundles',
  enforce: 'post',
  config: { order: 'post', handler: () => ({ cacheDir: 'node_modules/.vite/workerd' }) },
  transform: (code, id) => (id.includes('/node_modules/') ? { code, map: { mappings: '' } } : undefined),
}

/** A project whose tests run in workerd with the Worker. Its files share one workerd, which starts once. */
function inWorkerd(
  { exclude = [], ...test }: Project,
  vars: (inject: Inject) => Record<string, string>,
): TestProjectInlineConfiguration {
  return {
    plugins: [
      sharedBundles,
      cloudflareTest(({ inject }) => ({
        wrangler: { configPath: './wrangler.toml' },
        miniflare: { bindings: vars(inject as Inject) },
      })),
    ],
    test: {
      ...common,
      globalSetup: ['./test/support/devnet-chain.ts'],
      setupFiles: ['./test/support/resolve-once.ts', './test/support/stop-durable-objects.ts'],
      isolate: false,
      // workerd fetches each module on its own, and nearly all of them belong to these packages.
      deps: { optimizer: { ssr: { enabled: true, include: bundled } } },
      ...test,
      exclude: ['**/*.node.test.ts', ...exclude, ...excluded],
    },
  }
}

/** The client's sources, which the sources of `ats` import by the package's name. */
const alias = [
  { find: /^@agent-trading-service\/client$/, replacement: join(import.meta.dirname, 'packages/client/src/index.ts') },
  {
    find: /^@agent-trading-service\/client\/pay$/,
    replacement: join(import.meta.dirname, 'packages/client/src/pay.ts'),
  },
]

/** A project whose tests run in Node, in one process, because most of what they import is the same. */
function inNode({ exclude = [], ...test }: Project): TestProjectInlineConfiguration {
  return { test: { ...common, alias, isolate: false, ...test, exclude: [...exclude, ...excluded] } }
}

/**
 * The service without a keeper, because tests fire exits themselves, and without read leases, because tests change the
 * chain.
 */
const serviceVars = (inject: Inject) => ({
  ...workerVars(inject('deployment')),
  ...tenfoldGas,
  X402_ENABLED: 'false',
  KEEPER_ENABLED: 'false',
  READ_LEASE_MS: '0',
  PRICE_REFRESH_INTERVAL_SECONDS: '0',
  SUBMISSION_TIMEOUT_MS: PATIENT_MS,
})

const surfaces = [
  'test/conformance/**/*.test.ts',
  'test/fuzz/*.test.ts',
  'test/integration/{csv,events,http-surface,http-dialects,input,mcp,mcp-dialects,mcp-tools,mcp-limits,payment*,rehearsal}.test.ts',
]
const keeper = ['test/integration/keeper*.test.ts']
const lane = ['test/integration/lane-*.test.ts']
/** A chain of their own, whose prices come from signed reports. */
const reports = ['test/integration/price-reports.test.ts']
const reportStream = ['test/integration/report-stream.test.ts']
const protocolOnly = ['test/integration/protocol-only.test.ts']
/**
 * What a trade or an owner's message is checked against, and how it is refused. The other files of trades are in
 * `trading`.
 */
const checks = [
  'test/integration/{capital-modes,cheap-tokens,checks,intents,owner-messages,refusals,shared-error-codes}.test.ts',
  'test/integration/{smart-accounts,stolen-signer,surface-signing}.test.ts',
]
const history = ['test/integration/{history-property,history-fresh,order-index,webhooks}.test.ts']
/** A chain of their own, so that no other file counts on blocks that they take back. */
const reorgs = ['test/integration/{bodies-after-reorg,events-reorg}.test.ts']
const trackRecord = ['test/integration/{candles,leaderboard-property,weekly-feedback}.test.ts']
const e2e = [
  'test/e2e/**/*.test.ts',
  'test/conformance/**/*.node.test.ts',
  'test/integration/{event-streams-load,logs,price-providers,secrets}.node.test.ts',
  'test/cli/operator-service.node.test.ts',
]
/** These start services of their own. */
const walks = [
  'test/e2e/{clock-ahead,demo,deployment-rehearsal,demo-protocol-only,dev,operators-afternoon,packed-release,priced-depositors,rehearsal,serve}.node.test.ts',
]
const cli = ['test/cli/{trading,mcp,client-configurations,packed}.node.test.ts']
const faults = ['test/faults/**/*.test.ts']
/**
 * These and `recovery` start chains and services of their own, as the other files of `node` do; apart, they run next to
 * each other.
 */
const nodes = [
  'test/integration/{bad-nodes,fast-blocks,frozen-nodes,lagging-nodes,monotonic-reads,gas-price,faulty-surroundings}.node.test.ts',
  'test/providers/**/*.test.ts',
]
const recovery = ['devnet/**/*.test.ts', 'test/recovery/**/*.test.ts']

const projects = [
  inWorkerd(
    {
      name: 'surfaces',
      include: surfaces,
      globalSetup: ['./test/support/devnet-chain.ts', './test/support/facilitator-setup.ts'],
    },
    serviceVars,
  ),
  inWorkerd(
    {
      name: 'trading',
      include: ['test/integration/**/*.test.ts'],
      exclude: [
        ...surfaces,
        ...checks,
        ...keeper,
        ...lane,
        ...reports,
        ...reportStream,
        ...protocolOnly,
        ...history,
        ...reorgs,
        ...trackRecord,
      ],
      globalSetup: ['./test/support/another-chain.ts'],
    },
    serviceVars,
  ),
  inWorkerd({ name: 'checks', include: checks, globalSetup: ['./test/support/another-chain.ts'] }, serviceVars),
  inWorkerd(
    {
      name: 'protocol only',
      include: protocolOnly,
      globalSetup: ['./test/support/protocol-only-chain.ts'],
    },
    serviceVars,
  ),
  inWorkerd({ name: 'keeper', include: keeper }, inject => ({
    ...serviceVars(inject),
    KEEPER_ENABLED: 'true',
    KEEPER_INTERVAL_SECONDS: '5',
  })),
  inWorkerd({ name: 'reports', include: reports, globalSetup: ['./test/support/priced-chain.ts'] }, inject => ({
    ...serviceVars(inject),
    KEEPER_ENABLED: 'true',
  })),
  inWorkerd(
    { name: 'report stream', include: reportStream, globalSetup: ['./test/support/priced-chain.ts'] },
    inject => ({ ...serviceVars(inject), KEEPER_ENABLED: 'true', KEEPER_INTERVAL_SECONDS: '60' }),
  ),
  inWorkerd({ name: 'lane', include: lane, globalSetup: ['./test/support/lane-chain.ts'] }, inject =>
    laneVars(inject('laneRpcUrl')),
  ),
  // The track record has a chain of its own, because its tests let weeks pass and move prices.
  ...[
    { name: 'history', include: history },
    { name: 'reorgs', include: reorgs },
    { name: 'track record', include: trackRecord },
  ].map(project =>
    inWorkerd({ ...project, globalSetup: ['./test/support/history-chain.ts'] }, inject => ({
      ...workerVars(inject('deployment')),
      ...tenfoldGas,
      X402_ENABLED: 'false',
      KEEPER_ENABLED: 'false',
      SUBMISSION_TIMEOUT_MS: PATIENT_MS,
    })),
  ),
  inNode({
    name: 'e2e',
    include: e2e,
    exclude: walks,
    isolate: true, // browsers and servers of one file must not outlive it
    globalSetup: ['./test/support/devnet-chain.ts', './test/support/running-service.ts'],
  }),
  inNode({ name: 'walks', include: walks, isolate: true }),
  inNode({
    name: 'cli',
    include: cli,
    isolate: true,
    globalSetup: ['./test/support/devnet-chain.ts', './test/support/running-service.ts'],
  }),
  inNode({
    name: 'client',
    include: ['test/client/**/*.test.ts'],
    globalSetup: ['./test/support/devnet-chain.ts', './test/support/running-service.ts'],
  }),
  inNode({
    name: 'unit',
    include: ['test/unit/**/*.test.ts'],
    alias: [
      ...alias,
      { find: 'cloudflare:workers', replacement: join(import.meta.dirname, 'scripts/workerd-stub.ts') },
    ],
  }),
  inNode({
    name: 'node',
    include: ['scripts/*.test.ts', 'test/*/*.node.test.ts'],
    exclude: [...e2e, ...cli, ...faults, ...nodes, ...recovery, 'test/unit/**'],
  }),
  inNode({ name: 'nodes', include: nodes }),
  inNode({ name: 'recovery', include: recovery }),
  inNode({ name: 'faults', include: faults }),
]

for (const { test } of projects)
  if (!Object.values(processes).flat(2).includes(`${test?.name}`))
    throw new Error(`scripts/test-projects.ts does not run the project ${test?.name}`)

export default defineConfig({
  test: {
    fileParallelism: false,
    // The files of a project share a chain. With the durations of earlier runs, each run would order them otherwise.
    cache: false,
    // Vitest empties its cache of transformed modules when the lockfile changes, and the processes of a run would do so
    // at once.
    fsModuleCachePath: join(
      'node_modules/.vitest-cache',
      hash('sha256', readFileSync('package-lock.json')).slice(0, 16),
    ),
    // Each project is a group of its own: vitest runs the files of a group in one workerd.
    projects: projects.map((project, index) => ({
      ...project,
      test: { ...project.test, sequence: { groupOrder: index + 1 } },
    })),
  },
})

declare module 'vitest' {
  interface ProvidedContext {
    deployment: Deployment
    /** Whether tests with a variable size run at full size: `npm run test:long`. */
    isLong: boolean
  }
}
