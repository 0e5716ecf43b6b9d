import { readFileSync } from 'node:fs'
import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import type { Deployment } from './devnet/deployment.ts'
import { workerVars } from './devnet/worker-vars.ts'
import { laneVars } from './test/support/lane-chain.ts'

// scripts/test.ts starts the embedded chain, says here where it is, and stops it after the run.
const file = process.env.TEST_DEPLOYMENT
const deployment: Deployment | undefined = file ? JSON.parse(readFileSync(file, 'utf8')) : undefined
// Tests change the chain behind the Worker's back and look at once.
const testVars = { X402_ENABLED: 'false', READ_LEASE_MS: '0' }
const worker = (changes: Record<string, string>) =>
  cloudflareTest({
    wrangler: { configPath: './wrangler.toml' },
    miniflare: { bindings: deployment ? { ...workerVars(deployment), ...testVars, ...changes } : {} },
  })

/** For every project that runs in workerd. */
const setupFiles = ['./test/support/stop-durable-objects.ts']

export default defineConfig({
  test: {
    fileParallelism: false,
    projects: [
      {
        // Tests fire exits themselves, before a keeper could.
        plugins: [worker({ KEEPER_ENABLED: 'false' })],
        test: {
          name: 'worker',
          setupFiles,
          include: ['test/integration/**/*.test.ts', 'test/conformance/**/*.test.ts'],
          exclude: [
            '**/*.node.test.ts',
            '**/keeper*.test.ts',
            '**/lane-*.test.ts',
            '**/{history-property,history-fresh,events-reorg}.test.ts',
          ],
          globalSetup: ['./test/support/facilitator-setup.ts'],
          provide: { deployment: deployment as Deployment },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // A chain without contracts that the tests may break.
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: './wrangler.toml' },
            miniflare: { bindings: laneVars(inject('laneRpcUrl')) },
          })),
        ],
        test: {
          name: 'lane',
          setupFiles,
          include: ['test/integration/lane-*.test.ts'],
          globalSetup: ['./test/support/lane-chain.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // A chain of their own, which loses blocks.
        plugins: [
          cloudflareTest(({ inject }) => ({
            wrangler: { configPath: './wrangler.toml' },
            miniflare: {
              bindings: { ...workerVars(inject('deployment')), X402_ENABLED: 'false', KEEPER_ENABLED: 'false' },
            },
          })),
        ],
        test: {
          name: 'history',
          setupFiles,
          include: ['test/integration/{history-property,history-fresh,events-reorg}.test.ts'],
          globalSetup: ['./test/support/history-chain.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        plugins: [worker({})],
        test: {
          name: 'keeper',
          setupFiles,
          include: ['test/integration/keeper*.test.ts'],
          provide: { deployment: deployment as Deployment },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'node',
          include: ['devnet/**/*.test.ts', 'scripts/**/*.test.ts', 'test/**/*.node.test.ts'],
          provide: { deployment: deployment as Deployment },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})

declare module 'vitest' {
  interface ProvidedContext {
    deployment: Deployment
  }
}
