/**
 * The vitest projects, and `contracts` for the Solidity tests, in groups that take about the same time. Groups run in
 * parallel, the projects of one in sequence.
 */
export const groups = [
  ['trading'],
  ['surfaces'],
  ['lane', 'protocol only', 'client'],
  ['contracts', 'keeper', 'history'],
  ['node', 'e2e'],
]

/** Files that only `npm run test:full` runs. */
export const slowFiles = [
  'test/conformance/mcp-inspector.node.test.ts',
  'test/conformance/mcp-suite.node.test.ts',
  'test/conformance/openapi.node.test.ts',
  'test/integration/event-streams-load.node.test.ts',
]

/** Files whose tests are larger in `npm run test:full`: more seeds, cases or clients. */
export const scaledFiles = [
  'devnet/attacks.test.ts',
  'test/e2e/demo.node.test.ts',
  'test/faults/faults.node.test.ts',
  'test/integration/cheap-tokens.test.ts',
  'test/integration/checks.test.ts',
  'test/integration/history-fresh.test.ts',
  'test/integration/input.test.ts',
]
