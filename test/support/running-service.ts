import type { TestProject } from 'vitest/node'
import { freePort } from '../../devnet/anvil.ts'
import { startWorker } from '../../devnet/worker.ts'
import { tenfoldGas, workerVars } from '../../devnet/worker-vars.ts'

export const OPERATOR_SECRET = 'operator-of-the-tests'

/** Runs the service under `wrangler dev` on the project's chain, for the tests that use it as a client does. */
export default async function setup(project: TestProject) {
  const port = await freePort()
  const { deployment } = project.getProvidedContext()
  const url = `http://127.0.0.1:${port}`
  const worker = await startWorker({
    port,
    vars: {
      ...workerVars({ ...deployment, baseUrl: url }),
      ...tenfoldGas,
      OPERATOR_SECRET,
      REQUEST_BUDGET_ADDRESS: '80000', // for 4,000 streams
      SUBMISSION_TIMEOUT_MS: '15000',
      WEBHOOK_LOCAL_TARGETS: 'true',
    },
  })
  project.provide('serviceUrl', url)
  return () => worker.stop()
}

declare module 'vitest' {
  interface ProvidedContext {
    serviceUrl: string
  }
}
