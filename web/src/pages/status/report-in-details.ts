import type { Schema } from '../../data/client.ts'

/** What readiness reports, whether or not trading is possible. */
export type Report = Omit<Schema['Readiness'], 'status'>

const PARTS = {
  service: 'string',
  rpc: 'object',
  reader: 'object',
  contracts: 'object',
  executor: 'object',
  relayer: 'object',
  updater: 'object',
  reporter: 'object',
  keeper: 'object',
  history: 'object',
  oracle: 'object',
  timelock: 'object',
  facilitator: 'object',
  events: 'object',
  vaults: 'object',
  paused: 'object',
  restricted: 'array',
  findings: 'array',
  problems: 'array',
} as const satisfies Record<keyof Report, 'string' | 'object' | 'array'>

/** Returns the report in the details of a refusal; undefined if it was refused before everything was read. */
export const reportIn = (details: unknown): Report | undefined => (isReport(details) ? details : undefined)

const isReport = (details: unknown): details is Report =>
  typeof details === 'object' &&
  details !== null &&
  Object.entries(PARTS).every(([name, form]) => {
    const part = (details as Record<string, unknown>)[name]
    return form === 'array' ? Array.isArray(part) : typeof part === form && part !== null
  })
