// TODO(concurrency): importers move to concurrency.ts, then this file goes.
export { createSharedDeadlines, sleep, withDeadline } from './concurrency.ts'
