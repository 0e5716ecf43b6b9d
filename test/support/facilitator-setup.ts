import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

/** Starts the facilitator of the payment tests next to the embedded chain. */
export default async function setup(project: TestProject) {
  const { deployment } = project.getProvidedContext()
  const facilitator = fork(join(import.meta.dirname, 'facilitator.ts'), [JSON.stringify(deployment)])
  const [port] = await once(facilitator, 'message')
  project.provide('facilitatorUrl', `http://127.0.0.1:${port}`)
  return async () => {
    if (facilitator.connected) facilitator.disconnect()
    if (facilitator.exitCode === null) await once(facilitator, 'exit')
  }
}

declare module 'vitest' {
  interface ProvidedContext {
    facilitatorUrl: string
  }
}
