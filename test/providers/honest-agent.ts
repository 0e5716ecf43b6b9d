import { setTimeout as sleep } from 'node:timers/promises'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import type { Random } from '../support/seeded-random.ts'

/**
 * One operation of an agent that does everything right: what the service answered, and what is false about the answer.
 */
export type Attempt = {
  operation: string
  status: number
  code?: string
  falsehood?: string
  /** Of a mined intent. */
  transactionHash?: string
}

type Json = Record<string, unknown>
type Reply = { status: number; body: Json }

const SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META']
const TIMEOUT_MS = 20_000
const POLL_MS = 250

/**
 * Plays the life of an agent that repeats nothing but what it does not know the outcome of: it registers, and opens,
 * reads, protects, adds to, reduces and closes positions, each step as soon as the service confirmed the one before.
 * Every operation must succeed at once, and no answer may be older than an earlier one.
 */
export async function liveHonestly(
  url: string,
  {
    key,
    vault,
    rounds,
    random,
    name,
    holds = false,
    settleMs = 0,
  }: {
    key: `0x${string}`
    vault: string
    rounds: number
    random: Random
    name: string
    /** Whether it keeps its first position. */
    holds?: boolean
    /**
     * How long reads may show the state of a chain that has just lost blocks, until the lanes have sent again what was
     * in them.
     */
    settleMs?: number
  },
): Promise<Attempt[]> {
  const account = privateKeyToAccount(key)
  const attempts: Attempt[] = []

  async function fetchJson(path: string, body?: Json): Promise<Reply> {
    const response = await fetch(`${url}${path}`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    }).catch(() => undefined)
    return response
      ? { status: response.status, body: (await response.json().catch(() => ({}))) as Json }
      : { status: 0, body: {} }
  }

  /** Makes one request, which counts as one attempt. `check` returns what is false about a success. */
  async function attempt(
    operation: string,
    [path, body]: [path: string, body?: Json],
    check: (body: Json) => string | undefined = () => undefined,
  ): Promise<Json | undefined> {
    const request = async (): Promise<[Reply, boolean, string | undefined]> => {
      const reply = await fetchJson(path, body)
      const isSuccess = reply.status === 200 || reply.status === 201
      return [reply, isSuccess, isSuccess ? check(reply.body) : undefined]
    }
    const until = Date.now() + settleMs
    let [reply, isSuccess, falsehood] = await request()
    while (body === undefined && (!isSuccess || falsehood !== undefined) && Date.now() < until) {
      await sleep(POLL_MS)
      ;[reply, isSuccess, falsehood] = await request()
    }
    attempts.push({
      operation,
      status: reply.status,
      ...(typeof reply.body.code === 'string' && { code: reply.body.code }),
      ...(falsehood !== undefined && { falsehood }),
      ...(reply.status === 201 &&
        typeof reply.body.transactionHash === 'string' && { transactionHash: reply.body.transactionHash }),
    })
    return isSuccess ? reply.body : undefined
  }

  /** Quotes, signs and posts one intent. The nonce of the quote must be the next one. */
  async function trade(operation: string, path: string, query: Record<string, string>): Promise<Json | undefined> {
    const quote = await attempt(`${operation} quote`, [`${path}/quote?${new URLSearchParams(query)}`], body =>
      Number(body.nonce) === nextNonce ? undefined : `nonce ${body.nonce} instead of ${nextNonce}`,
    )
    if (quote?.body === undefined) return undefined
    const signature = await sign(account, quote)
    const body = { ...(quote.body as Json), signature }
    const receipt = (await attempt(operation, [path, body])) ?? (await learnOutcome(path, body))
    if (receipt) nextNonce++
    return receipt
  }

  /** After an unclear response, sends the same body until it is clear. The attempt has failed all the same. */
  async function learnOutcome(path: string, body: Json): Promise<Json | undefined> {
    const unclear = attempts.at(-1)
    if (unclear?.code !== 'SUBMISSION_UNKNOWN') return undefined
    let reply: Reply
    do reply = await fetchJson(path, body)
    while (reply.body.code === 'SUBMISSION_UNKNOWN')
    if (reply.status !== 201) return undefined
    unclear.transactionHash = `${reply.body.transactionHash}`
    return reply.body
  }

  let nextNonce = 0
  const registration = { vault, name, metadataURI: 'https://agents.example/honest.json', signer: account.address }
  const quote = await attempt('register quote', [`/agents/register/quote?${new URLSearchParams(registration)}`])
  if (quote?.body === undefined) return attempts
  const registered = await attempt('register', [
    '/agents/register',
    { ...(quote.body as Json), signature: await sign(account, quote) },
  ])
  if (registered === undefined) return attempts
  const agent = `/agents/${registered.agentId}`

  for (let round = 0; round < rounds; round++) {
    const symbol = random.pick(SYMBOLS)
    const opened = await trade('open', `${agent}/trade-intents`, {
      symbol,
      usdcAmount: `${random.integer(20, 60)}`,
      exits: '-800:10000,1500:10000',
    })
    if (opened === undefined) continue
    if (holds) break
    const { positionId } = opened as { positionId: string }
    const readPosition = (operation: string, status: string) =>
      attempt(operation, [`${agent}/positions/${positionId}`], body => {
        const position = (body.position ?? body) as Json
        return position.status === status ? undefined : `position ${positionId} is ${position.status}, not ${status}`
      })
    await readPosition('position', 'Open')
    await attempt('risk state', [`${agent}/risk-state`], body =>
      JSON.stringify(body).includes(`"nonce":"${nextNonce}"`) || !JSON.stringify(body).includes('"nonce"')
        ? undefined
        : `a nonce that is not ${nextNonce}`,
    )
    await trade('ladder', `${agent}/exit-ladder-intents`, { positionId, exits: '-700:10000,1600:10000' })
    await trade('add', `${agent}/add-intents`, { positionId, usdcAmount: '15' })
    await trade('reduce', `${agent}/reduce-intents`, { positionId, exitBps: '5000' })
    const closed = await trade('close', `${agent}/reduce-intents`, { positionId, exitBps: '10000' })
    if (closed) await readPosition('closed position', 'Closed')
  }
  return attempts
}

const sign = (account: PrivateKeyAccount, { typedData }: Json) =>
  account.signTypedData(typedData as Parameters<PrivateKeyAccount['signTypedData']>[0])
