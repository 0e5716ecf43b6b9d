import { abortAllDurableObjects, listDurableObjectIds, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterAll } from 'vitest'

// Deletes every Durable Object and its alarm at the end of a test file. The indexer, the lanes and the keeper keep
// working between requests, and @cloudflare/vitest-plugin resolves the Worker's main module over vitest's RPC for each
// call or alarm of an object. If such a request is pending when vitest closes the file, it is rejected, and the run
// fails with `Closing rpc while "resolve" was pending` although every test has passed. D1 stays, as it does when a
// service restarts: an index that starts at block 0 for each file is minutes behind late files.

/** Without the sessions, which have random names: no later file meets them. */
const { MCP_SESSION: _, ...named } = env as Partial<Env>

const isNamespace = (binding: unknown): binding is DurableObjectNamespace =>
  Object.prototype.toString.call(binding) === '[object DurableObjectNamespace]'

afterAll(async () => {
  for (const namespace of (Object.values(named) as unknown[]).filter(isNamespace))
    for (const id of await listDurableObjectIds(namespace))
      await runInDurableObject(namespace.get(id), async (_, { storage }) => {
        await storage.deleteAlarm()
        await storage.deleteAll()
      })
  await abortAllDurableObjects()
})
