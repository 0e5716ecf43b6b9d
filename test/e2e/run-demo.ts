import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Runs `npm run demo` and returns what it prints. */
export const runDemo = (chainId: number, ...options: string[]) =>
  promisify(execFile)(process.execPath, [join(import.meta.dirname, '../../scripts/demo.ts'), ...options], {
    env: { ...process.env, CHAIN_ID: `${chainId}` },
  })
