/** The test files of the lanes. They share one chain, so each uses its own part of the accounts. */
export const laneTestFiles = [
  'lane-relay',
  'lane-node-faults',
  'lane-chain-faults',
  'lane-accounts',
  'lane-gas-budgets',
  'lane-alerts',
  'lane-refusals',
] as const
export type LaneTestFile = (typeof laneTestFiles)[number]

export const LANES_PER_FILE = 28
