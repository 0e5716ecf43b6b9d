import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { RateLimitedError, type Submission, UnknownOutcomeError } from '../../packages/client/src/index.ts'
import type { ProxiedRequest, ProxiedResponse, ServiceProxy } from './proxy.ts'
import { startProxy } from './proxy.ts'
import { clientOf, countingAccount, LADDER, newAccount, newAgent, newPayer, serviceUrl } from './support.ts'

const account = countingAccount(newAccount())
let agentId: string
let proxy: ServiceProxy

beforeAll(async () => {
  proxy = await startProxy(serviceUrl)
  agentId = await newAgent(account)
})
afterAll(() => proxy.stop())
beforeEach(() => {
  proxy.set({})
  proxy.requests.length = 0
  account.signatures = 0
})

const isPost = ({ method }: ProxiedRequest) => method === 'POST'
const posts = () => proxy.requests.filter(isPost)
const opened = async () => {
  const { trades } = await clientOf(account).getTradeHistory({ agentId, type: 'PositionOpened', limit: 100 })
  return trades.length
}
const open = (symbol: string, options = {}) =>
  clientOf(account, { baseUrl: proxy.url, ...options })
    .agent(agentId)
    .open({ symbol, usdcAmount: '10', exits: LADDER })

/** Loses the answers to the first posts, after the service has executed them. */
function loseAnswers(count: number, instead: ProxiedResponse | 'reset') {
  let lost = 0
  proxy.set({ onResponse: request => (isPost(request) && lost++ < count ? instead : undefined) })
}

const answer = (status: number, code: string, more: object = {}): ProxiedResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: { error: 'Changed by the test.', code, requestId: 'test', ...more },
})

it('repeats the identical body after lost answers and SUBMISSION_UNKNOWN, and trades once', async () => {
  const before = await opened()
  loseAnswers(2, 'reset')
  expect(await open('NVDA')).toMatchObject({ positionId: expect.any(String) })
  expect(new Set(posts().map(({ body }) => body)).size).toBe(1)
  expect(posts()).toHaveLength(3)
  loseAnswers(1, answer(502, 'SUBMISSION_UNKNOWN', { retryable: true, retryAfterSeconds: 0 }))
  await open('AAPL')
  expect(account.signatures).toBe(2)
  expect(await opened()).toBe(before + 2)
})

it('finds the trade by its digest when no post brings an answer', async () => {
  const before = await opened()
  loseAnswers(Number.POSITIVE_INFINITY, 'reset')
  const receipt = await open('MSFT', { retryBudgetMs: 1_500 })
  expect(receipt).toMatchObject({ agentId, positionId: expect.any(String), transactionHash: expect.any(String) })
  expect(account.signatures).toBe(1)
  expect(await opened()).toBe(before + 1)
})

it('says so when the outcome stays unknown, and resumes to the same trade', async () => {
  const before = await opened()
  const stored: Submission[] = []
  proxy.set({
    onResponse: request => (isPost(request) || request.path.startsWith('/intents/') ? 'reset' : undefined),
  })
  const error = await open('TSLA', {
    retryBudgetMs: 1_500,
    onSubmission: (submission: Submission) => void stored.push(submission),
  }).catch(error => error)
  expect(error).toBeInstanceOf(UnknownOutcomeError)
  expect(error).toMatchObject({ code: 'UNKNOWN_OUTCOME', retryable: true, details: { digest: stored[0]?.digest } })
  const client = clientOf(account)
  const [first, second] = await Promise.all([client.resume(error.submission), client.resume(stored[0] as Submission)])
  expect(first).toEqual(second)
  expect(account.signatures).toBe(1)
  expect(await opened()).toBe(before + 1)
})

it('waits for Retry-After within its budget, and throws when the wait is longer', async () => {
  let limited = 0
  proxy.set({
    onRequest: request =>
      isPost(request) && limited++ < 2
        ? { ...answer(429, 'RATE_LIMITED', { retryable: true }), headers: { 'retry-after': '1' } }
        : undefined,
  })
  const began = Date.now()
  await open('AMZN')
  expect(Date.now() - began).toBeGreaterThanOrEqual(2_000)
  expect(posts()).toHaveLength(3)

  proxy.set({ onRequest: () => answer(429, 'RATE_LIMITED', { retryable: true, retryAfterSeconds: 60 }) })
  const error = await clientOf(account, { baseUrl: proxy.url, retryBudgetMs: 2_000 })
    .listTokens()
    .catch(error => error)
  expect(error).toBeInstanceOf(RateLimitedError)
  expect(error).toMatchObject({ retryAfterSeconds: 60 })
})

it('does not repeat a refusal', async () => {
  proxy.set({ onRequest: request => (isPost(request) ? answer(400, 'EXCEEDS_ALLOCATION_CAP') : undefined) })
  await expect(open('GOOGL')).rejects.toMatchObject({ code: 'EXCEEDS_ALLOCATION_CAP', kind: 'refused' })
  expect(posts()).toHaveLength(1)
})

it('pays the fee once when the answer to a registration is lost', async () => {
  const payer = countingAccount(newAccount())
  const paying = newPayer()
  let payments = 0
  loseAnswers(0, 'reset')
  let answers = 0
  proxy.set({
    // The first post gets 402; the answer to the paid one is lost.
    onResponse: request => (isPost(request) && ++answers === 2 ? 'reset' : undefined),
  })
  const { agentId } = await clientOf(payer, { baseUrl: proxy.url }).register({
    vault: 'genesis',
    name: 'paid once',
    metadataURI: 'https://agents.example/once.json',
    payer: {
      ...paying,
      pay(required) {
        payments++
        return paying.pay(required)
      },
    },
  })
  expect(agentId).toMatch(/^\d+$/)
  expect(payments).toBe(1)
  expect(posts()).toHaveLength(3)
})
