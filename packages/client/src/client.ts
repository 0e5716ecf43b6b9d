import type { Account } from './account.ts'
import { createAgent } from './agent.ts'
import { type Integer, toDigits } from './amounts.ts'
import { createChainReader } from './chain.ts'
import { createDeployment, machineTime, type Pins } from './deployment.ts'
import type { Submission } from './errors.ts'
import { type EventsRequest, streamEvents } from './events.ts'
import type { operations } from './generated/openapi.ts'
import { createHttp, type Fetch } from './http.ts'
import { type DeadlineTerms, judgeDeadline } from './judge-deadline.ts'
import { createNonceMemory, createNonces, type NonceStore } from './nonces.ts'
import { createOrders } from './orders.ts'
import { createOwner } from './owner.ts'
import { type ClientContext, type SignedElsewhere, submitAndRemember, takeNonce } from './prepare.ts'
import { createReads } from './reads.ts'
import { type PayingRegisterRequest, prepareRegister, type RegisterRequest, register } from './register.ts'
import type { Payer } from './submit.ts'
import { createTurns } from './turns.ts'
import { createWebhooks } from './webhooks.ts'

export type ClientOptions = {
  /** The service, such as `https://api.example`. */
  baseUrl: string
  /** Signs trades, and messages of owners unless `owner()` is given another account. Reads need none. */
  account?: Account
  /** What messages may name. Pin everything you know: without pins the client trusts the service's first response. */
  pins?: Pins
  /** A node of your choice. The client then confirms pins, nonces and deadlines on chain. */
  rpcUrl?: string
  fetch?: Fetch
  /** How far ahead a deadline that the service suggests may be; 900 seconds by default. */
  maxDeadlineSeconds?: number
  /** How long one request may take; 20 seconds by default. */
  requestTimeoutMs?: number
  /** How long a call retries in all; 60 seconds by default. */
  retryBudgetMs?: number
  /** Called with each signed message before it is posted. Store it, and `resume` it after a crash. */
  onSubmission?: (submission: Submission) => void | Promise<void>
  /** Called with what to know before a signature, such as a wrong clock of this machine; `console.warn` by default. */
  onWarning?: (warning: string) => void
  /** Keeps which nonces were used, in memory by default. Keep them in a file where a program restarts often. */
  nonceStore?: NonceStore
}

export type Client = ReturnType<typeof createClient>

/** What an agent's owner does. */
export type ClientOwner = ReturnType<typeof createOwner>

/** What an agent's signer does. */
export type ClientAgent = ReturnType<typeof createAgent> &
  Pick<ClientOwner, 'prepareCancel' | 'cancel'> & {
    orders: ReturnType<typeof createOrders>
    webhooks: ReturnType<typeof createWebhooks>
  }

type VerifyBody = NonNullable<operations['verifySignature']['requestBody']>['content']['application/json']
type VerifyOutput = operations['verifySignature']['responses'][200]['content']['application/json']

/**
 * Creates a client of one deployment. It holds no connection; nothing is read before the first call.
 * @example
 * const client = createClient({ baseUrl: 'https://api.example', account: privateKeyToAccount(key) })
 */
export function createClient(options: ClientOptions) {
  const { baseUrl, account, pins = {}, rpcUrl, fetch, onSubmission } = options
  const { maxDeadlineSeconds = 900, requestTimeoutMs = 20_000, retryBudgetMs = 60_000 } = options
  const { nonceStore = createNonceMemory(), onWarning = console.warn } = options
  const http = createHttp({ baseUrl, fetch, requestTimeoutMs, retryBudgetMs })
  const reads = createReads(http)
  const deployment = createDeployment(reads, pins, rpcUrl === undefined ? undefined : createChainReader(rpcUrl))
  const context: ClientContext = {
    http,
    deployment,
    account,
    maxDeadlineSeconds,
    onSubmission,
    onWarning,
    nonces: createNonces(nonceStore),
    inTurn: createTurns(),
  }
  const own = {
    /**
     * What an agent's signer does. Cancelling takes the owner's signature, so the account has to be both.
     * @example
     * await client.agent('7').close({ positionId: '3' })
     */
    agent(agentId: Integer): ClientAgent {
      const { prepareCancel, cancel } = createOwner(context, reads, agentId, undefined)
      const webhooks = createWebhooks(context, agentId)
      const agent = createAgent(context, agentId)
      const orders = createOrders(context, reads, agent.agentId)
      return Object.assign(agent, { prepareCancel, cancel, orders, webhooks })
    },
    /**
     * What an agent's owner does, signed by `ownerAccount` or the client's account.
     * @example
     * await client.owner('7', ownerAccount).stop({ action: 'reduceOnly' })
     */
    owner: (agentId: Integer, ownerAccount?: Account): ClientOwner =>
      createOwner(context, reads, agentId, ownerAccount),
    /**
     * Registers an agent and returns its id; pays the fee with `payer` where there is one.
     * @example const { agentId } = await client.register({ vault: 'genesis', name: 'first', metadataURI:
     * 'https://a.example', payer })
     */
    register: (request: PayingRegisterRequest) => register(context, request),
    /**
     * Fetches the quote of a registration and compares it with the request, for a signature from elsewhere.
     * @example
     * const registration = await client.prepareRegister({ vault: 'genesis', name: 'first', metadataURI, signer })
     * await registration.submit(await wallet.signTypedData(registration.typedData), { payer })
     */
    prepareRegister: (request: RegisterRequest) => prepareRegister(context, request),
    /**
     * Posts a signed message again and returns its outcome. It is never executed twice.
     * @example
     * if (error instanceof UnknownOutcomeError) await client.resume(error.submission)
     */
    resume: <Receipt = Record<string, unknown>>(submission: Submission, payer?: Payer) =>
      submitAndRemember<Receipt>(context, submission, payer),
    /**
     * Returns the time that deadlines are compared with, in Unix seconds: this machine's, or the newest block's
     * if that is later and `rpcUrl` is given.
     * @example
     * const deadline = BigInt(await client.now()) + 300n
     */
    now: async () => Math.max(await deployment.now(), machineTime()),
    /**
     * Takes the nonce of a trade that is signed here and posted by another program.
     * @example
     * await client.takeNonce(typedData)
     */
    takeNonce: (trade: SignedElsewhere) => takeNonce(context, trade),
    /**
     * Returns the token of a position as the node has it; undefined without `rpcUrl`.
     * @example
     * const token = await client.tokenOfPosition('3')
     */
    tokenOfPosition: async (positionId: Integer) =>
      (await deployment.positionOf(toDigits(positionId, 'positionId')))?.token,
    /**
     * Judges the deadline of a quote that another program requested, as the client judges those of its own quotes.
     * @example
     * const { refusal, warning } = await client.judgeDeadline({ primaryType, deadline, serverTime: quote.serverTime })
     */
    judgeDeadline: async ({
      deadline,
      ...quote
    }: { deadline: string } & Pick<DeadlineTerms, 'primaryType' | 'serverTime'>) =>
      judgeDeadline(deadline, {
        ...quote,
        now: await deployment.now(),
        isFromNode: rpcUrl !== undefined,
        maxDeadlineSeconds,
      }),
    /**
     * Iterates over events, and resumes by id after a dropped connection.
     * @example
     * for await (const { id, type, data } of client.events({ agentId: '7' })) console.log(id, type, data)
     * @example
     * for await (const { type, data } of client.events({ symbols: ['NVDA', 'AAPL'] }))
     *   if (type === 'price') console.log(data.symbol, data.priceUsd)
     */
    events: (request: EventsRequest = {}) => streamEvents(http, request),
    /**
     * Asks the service what is wrong with a signature. Sends nothing to the chain.
     * @example
     * const { valid } = await client.verifySignature({ primaryType: 'OpenPosition', agentId: '7', intent, signature })
     */
    verifySignature: (body: VerifyBody) => http.once<VerifyOutput>('/signing/verify', { method: 'POST', body }),
  }
  // Spread methods would lose their comments on the way to the editor.
  return Object.assign(own, reads)
}
