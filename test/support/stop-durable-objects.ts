import { reset } from 'cloudflare:test'
import { afterAll } from 'vitest'

// Deletes every Durable Object and its alarm at the end of a test file. The indexer, the lanes and the keeper keep working
// between requests, and @cloudflare/vitest-plugin resolves the Worker's main module over vitest's RPC for each call or
// alarm of an object. If such a request is pending when vitest closes the file, it is rejected, and the run fails with
// `Closing rpc while "resolve" was pending` although every test has passed.
afterAll(() => reset())
