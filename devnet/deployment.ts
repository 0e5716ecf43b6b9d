import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Address } from 'viem'
import type { Accounts } from './accounts.ts'
import type { DevnetContracts } from './seed.ts'

/** All there is to know to use a running devnet. The keys are public ones, of a toy chain. */
export type Deployment = {
  chainId: number
  rpcUrl: string
  baseUrl: string
  contracts: DevnetContracts
  vaults: Record<string, Address>
  tokens: Record<string, Address>
  accounts: Accounts
  /** The provider of signed reports, if prices come from it. */
  reports?: { url: string; key: string; secret: string }
}

export const DEPLOYMENT_FILE = join(import.meta.dirname, '../.devnet/deployment.json')

/** Writes it in one move, so that a reader never sees half of it. */
export function writeDeployment(deployment: Deployment, path = DEPLOYMENT_FILE): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.${process.pid}`, `${JSON.stringify(deployment, null, 2)}\n`)
  renameSync(`${path}.${process.pid}`, path)
}

/** The deployment of the devnet that runs now; throws when none does. */
export function readDeployment(path = DEPLOYMENT_FILE): Deployment {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new Error('No devnet is running (there is no .devnet/deployment.json): start one with `npm run devnet`.', {
      cause,
    })
  }
}

/** Removes the file, unless another devnet has written its own meanwhile. */
export function removeDeployment({ rpcUrl }: Deployment, path = DEPLOYMENT_FILE): void {
  try {
    if (readDeployment(path).rpcUrl === rpcUrl) rmSync(path)
  } catch {
    // nothing is there to remove
  }
}
