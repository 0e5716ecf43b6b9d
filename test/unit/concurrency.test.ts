import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  createKeyedQueue,
  createQueue,
  createSemaphore,
  createSharedDeadlines,
  singleFlight,
  singleFlightAgain,
} from '../../src/concurrency.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Work whose runs end when the test says so. */
function createWork() {
  const runs: PromiseWithResolvers<string>[] = []
  const args: string[] = []
  const work = (arg: string) => {
    const run = Promise.withResolvers<string>()
    runs.push(run)
    args.push(arg)
    return run.promise
  }
  return {
    work,
    args,
    end: (run: number) => runs[run]?.resolve(`run ${run}`),
    fail: (run: number) => runs[run]?.reject(new Error(`run ${run} failed`)),
  }
}

const turn = () => vi.advanceTimersByTimeAsync(0)

test('calls during a single flight share its run, and a later call starts another one', async () => {
  const { work, args, end } = createWork()
  const flight = singleFlight(work)
  const calls = [flight('a'), flight('b')]
  end(0)
  expect(await Promise.all(calls)).toEqual(['run 0', 'run 0'])
  const later = flight('c')
  end(1)
  expect(await later).toBe('run 1')
  expect(args).toEqual(['a', 'c'])
})

test('a single flight that fails rejects all of its calls and does not block the next one', async () => {
  const { work, fail, end } = createWork()
  const flight = singleFlight(work)
  const calls = Promise.allSettled([flight('a'), flight('b')])
  fail(0)
  expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const next = flight('c')
  end(1)
  expect(await next).toBe('run 1')
})

test('calls during a run share one further run, which starts after it', async () => {
  const { work, args, end, fail } = createWork()
  const flight = singleFlightAgain(work)
  const first = flight('a')
  const others = [flight('b'), flight('c')]
  await turn()
  expect(args).toEqual(['a'])
  const failed = expect(first).rejects.toThrow('run 0 failed')
  fail(0)
  await failed
  await turn()
  expect(args).toEqual(['a', 'b'])
  const last = flight('d')
  end(1)
  expect(await Promise.all(others)).toEqual(['run 1', 'run 1'])
  await turn()
  end(2)
  expect(await last).toBe('run 2')
  expect(args).toEqual(['a', 'b', 'd'])
})

test('a call that comes as soon as a run has ended starts a run of its own', async () => {
  const { work, args, end } = createWork()
  const flight = singleFlightAgain(work)
  const again = flight('a').then(() => flight('b'))
  end(0)
  await turn()
  end(1)
  expect(await again).toBe('run 1')
  expect(args).toEqual(['a', 'b'])
})

test('runs keep their pause', async () => {
  const { work, args, end } = createWork()
  const flight = singleFlightAgain(work, 100)
  void flight('a')
  end(0)
  await vi.advanceTimersByTimeAsync(50)
  void flight('b')
  await vi.advanceTimersByTimeAsync(49)
  expect(args).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(1)
  expect(args).toEqual(['a', 'b'])
  end(1)
  await vi.advanceTimersByTimeAsync(1_000)
  void flight('c')
  expect(args).toEqual(['a', 'b', 'c'])
})

test('a queue runs one piece of work after the other, also after one that fails', async () => {
  const { work, args, end, fail } = createWork()
  const inOrder = createQueue()
  const results = Promise.allSettled(['a', 'b'].map(arg => inOrder(() => work(arg))))
  await turn()
  expect(args).toEqual(['a'])
  fail(0)
  await turn()
  expect(args).toEqual(['a', 'b'])
  end(1)
  expect(await results).toMatchObject([{ status: 'rejected' }, { value: 'run 1' }])
})

test('a keyed queue orders only work of the same key', async () => {
  const { work, args, end, fail } = createWork()
  const inOrder = createKeyedQueue<number>()
  const results = Promise.allSettled([
    inOrder(1, () => work('a')),
    inOrder(1, () => work('b')),
    inOrder(2, () => work('c')),
  ])
  await turn()
  expect(args).toEqual(['a', 'c'])
  fail(0)
  await turn()
  expect(args).toEqual(['a', 'c', 'b'])
  end(1)
  end(2)
  expect(await results).toMatchObject([{ status: 'rejected' }, { value: 'run 2' }, { value: 'run 1' }])
})

test('a semaphore gives its slots in order, first to those who go first, then to the lowest rank', async () => {
  const semaphore = createSemaphore(1)
  const order: string[] = []
  const acquire = async (name: string, { isFirst = false, rank = 0 } = {}) => {
    if (await semaphore.acquire({ deadline: Date.now() + 1_000, isFirst, rank })) order.push(name)
  }
  void acquire('a')
  void acquire('c', { rank: 1 })
  void acquire('b')
  void acquire('urgent', { isFirst: true, rank: 2 })
  await turn()
  expect(order).toEqual(['a'])
  expect(semaphore.isFull()).toBe(true)
  semaphore.release()
  await turn()
  expect(order).toEqual(['a', 'urgent'])
  semaphore.resize(3)
  await turn()
  expect(order).toEqual(['a', 'urgent', 'b', 'c'])
  semaphore.resize(1)
  semaphore.release(true)
  semaphore.release()
  expect(semaphore.isFull()).toBe(true)
})

test('of a semaphore, those who go first leave a quarter to the others', async () => {
  const semaphore = createSemaphore(4)
  for (let held = 0; held < 4; held++) await semaphore.acquire({ isFirst: true })
  const order: string[] = []
  for (const name of ['urgent 1', 'urgent 2', 'other 1', 'other 2'])
    void semaphore.acquire({ isFirst: name.startsWith('urgent') }).then(() => order.push(name))
  semaphore.release(true)
  semaphore.release(true)
  await turn()
  expect(order).toEqual(['other 1', 'urgent 1'])
})

test('a wait for a slot ends when it is displaced', async () => {
  const semaphore = createSemaphore(1)
  await semaphore.acquire()
  const displaced = Promise.withResolvers<void>()
  const wait = semaphore.acquire({ displaced: displaced.promise })
  const next = semaphore.acquire()
  displaced.resolve()
  expect(await wait).toBe(false)
  semaphore.release()
  expect(await next).toBe(true)
})

test('a semaphore stops waiting at the deadline, and the slot goes to another', async () => {
  const semaphore = createSemaphore(1)
  await semaphore.acquire()
  const late = semaphore.acquire({ deadline: Date.now() + 100 })
  const patient = semaphore.acquire({ deadline: Date.now() + 1_000 })
  await vi.advanceTimersByTimeAsync(100)
  expect(await late).toBe(false)
  semaphore.release()
  expect(await patient).toBe(true)
})

test('waits that share a timer end at their own deadlines, whatever the order they began in', async () => {
  const withDeadline = createSharedDeadlines()
  const ended: number[] = []
  const never = new Promise<never>(() => {})
  const waits = [300, 100, 200, 100].map(ms => withDeadline(never, Date.now() + ms, () => ended.push(ms)))
  await vi.advanceTimersByTimeAsync(99)
  expect(ended).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(ended).toEqual([100, 100])
  await vi.advanceTimersByTimeAsync(200)
  await Promise.all(waits)
  expect(ended).toEqual([100, 100, 200, 300])
})

test('waits that share a timer end it with the last of them', async () => {
  const withDeadline = createSharedDeadlines()
  const work = Array.from({ length: 3 }, () => Promise.withResolvers<string>())
  const waits = work.map(({ promise }, index) => withDeadline(promise, Date.now() + 1_000 + index, () => 'late'))
  expect(vi.getTimerCount()).toBe(1)
  for (const { resolve } of work) resolve('done')
  expect(await Promise.all(waits)).toEqual(['done', 'done', 'done'])
  expect(vi.getTimerCount()).toBe(0)
})

test('waits that share a timer reject if the promise rejects or the timeout throws', async () => {
  const withDeadline = createSharedDeadlines()
  const failed = withDeadline(Promise.reject(new Error('failed')), Date.now() + 10, () => 'late')
  await expect(failed).rejects.toThrow('failed')
  const late = withDeadline(new Promise<never>(() => {}), Date.now() + 10, () => {
    throw new Error('late')
  })
  const rejected = expect(late).rejects.toThrow('late')
  await vi.advanceTimersByTimeAsync(10)
  await rejected
})
