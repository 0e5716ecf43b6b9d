import type { Hex } from 'viem'

/** What GET /intents/{digest} returns, as far as the harness reads it. */
export type IntentStatus = { state: string; agentId?: string; positionId?: string; transactionHash?: Hex }

type ResponseBody = {
  code?: string
  agentId?: string
  positionId?: string
  orderId?: Hex
  transactionHash?: Hex
  /** Facts of a refusal. */
  details?: { transactionHash?: Hex } | undefined
}

/** What a client received for one signed body. */
export type ClientResponse = { status: number; body: ResponseBody } | { status: 'no response' }

/** One signed body and every response to it, in order. */
export type SignedIntent = {
  digest: Hex
  kind: 'register' | 'open' | 'add' | 'reduce' | 'ladder' | 'order' | 'cancel' | 'owner'
  /** The goal this body tries to reach. A client signs another body for the same goal after an error. */
  goal: string
  /** Whether the body was posted twice at once. One post may then get an error although the other one succeeds. */
  hasTwin: boolean
  /** Whether the owner acts on the agent during the run. */
  hasActiveOwner: boolean
  responses: ClientResponse[]
}

/** A transaction of the service's accounts in a block, with the ids of its event. */
export type Execution = {
  hash: Hex
  /** Undefined if the transaction carries no intent. */
  digest?: Hex | undefined
  succeeded: boolean
  agentId?: string | undefined
  positionId?: string | undefined
  orderId?: Hex | undefined
}

/** An account after a run: transactions mined in the run, nonces relative to its start, and transactions in the pool. */
export type AccountState = { address: string; mined: number; nonce: number; pendingNonce: number; inPool: number }

/** What the registrations of a run cost: how many fees were paid, and how often each payer's settlement reverted. */
export type Charges = { paid: number; revertsByPayer: readonly number[] }

/** Everything that is known about a run after the service has become idle. */
export type RunRecord = {
  intents: SignedIntent[]
  executions: Execution[]
  accounts: AccountState[]
  /** Undefined if registrations are free. */
  charges?: Charges | undefined
  /** Whether a reorg removed blocks. Their transactions may be signed again, with a higher fee or another nonce. */
  lostBlocks: boolean
  /** Whether a foreign transaction used an account's nonce. */
  hasForeignUse: boolean
  /** What the service says in the end about the intents whose outcome it told; empty unless blocks were lost. */
  statuses: ReadonlyMap<Hex, IntentStatus>
  /** Everything the service printed and returned. */
  texts: string[]
  /** What no text may contain. */
  secrets: string[]
}

export type Violation = { rule: ViolatedRule; what: string }
export type ViolatedRule =
  | 'executed twice'
  | 'goal reached twice'
  | 'false success'
  | 'false error'
  | 'no verdict'
  | 'not idle'
  | 'unknown execution'
  | 'charged twice'
  | 'registered without payment'
  | 'settled again after a revert'
  | 'secret leaked'

/** Returns what the service did wrong in a run: intents executed more than once, false responses, leaked secrets. */
export function findViolations(run: RunRecord): Violation[] {
  const { intents, executions, accounts, texts, secrets, lostBlocks } = run
  const violations: Violation[] = []
  const report = (rule: ViolatedRule, what: string) => violations.push({ rule, what })
  const successes = Map.groupBy(
    executions.filter(({ succeeded }) => succeeded),
    ({ digest }) => digest,
  )
  const byHash = new Map(executions.map(execution => [execution.hash, execution]))

  for (const intent of intents) {
    const { digest, kind, responses } = intent
    const name = `${kind} ${digest}`
    const executed = successes.get(digest) ?? []
    if (executed.length > 1) report('executed twice', `${name} in ${executed.map(({ hash }) => hash).join(', ')}`)
    for (const response of responses) {
      if (isSuccess(response)) {
        const resent = lostBlocks ? executed[0] : undefined
        const problem = problemWith(intent, bodyOf(response), { byHash, resent })
        if (problem && !isCorrected(run, intent, executed[0]))
          report('false success', `${name}: ${problem}${saidAbout(run, digest)}`)
      } else if (isRefusal(response) && executed[0] && !(intent.hasTwin && responses.some(isSuccess))) {
        const hasRevertedBefore = bodyOf(response).details?.transactionHash === executed[0].hash
        if (!hasRevertedBefore || !isCorrected(run, intent, executed[0]))
          report(
            'false error',
            `${name} got ${responses.map(nameOf).join(', ')} and was executed in ${executed[0].hash}`,
          )
      }
    }
    if (!responses.some(isVerdict))
      report('no verdict', `${name} got ${responses.map(nameOf).join(', ') || 'no response'}`)
  }

  const reached = Map.groupBy(
    intents.filter(({ digest }) => successes.has(digest)),
    ({ goal }) => goal,
  )
  for (const [goal, bodies] of reached)
    if (bodies.length > 1) report('goal reached twice', `${goal} by ${bodies.map(({ digest }) => digest).join(', ')}`)
  const known = new Set(intents.map(({ digest }) => digest))
  for (const { digest, hash } of executions)
    if (digest !== undefined && !known.has(digest)) report('unknown execution', `${digest} in ${hash}`)

  for (const { rule, what } of findPaymentViolations(run)) report(rule, what)
  for (const { address, mined, nonce, pendingNonce, inPool } of accounts)
    if (nonce !== mined || pendingNonce !== nonce || inPool > 0)
      report(
        'not idle',
        `${address} has nonce ${nonce}, pending nonce ${pendingNonce}, ${mined} mined and ${inPool} in the pool`,
      )
  for (const text of texts) {
    const secret = secrets.find(secret => text.includes(secret))
    if (secret !== undefined) report('secret leaked', text.slice(Math.max(0, text.indexOf(secret) - 60)).slice(0, 160))
  }
  return violations
}

export const isSuccess = ({ status }: ClientResponse): boolean => status === 200 || status === 201

/** Whether a response says that nothing was executed and nothing will be. */
export const isRefusal = (response: ClientResponse): boolean => {
  const { status } = response
  return typeof status === 'number' && ((status >= 400 && status < 500) || bodyOf(response).code === 'TOO_MANY_REVERTS')
}

/** Whether a response is definite, so that a client stops posting the body. */
export const isVerdict = (response: ClientResponse): boolean => isSuccess(response) || isRefusal(response)

/** Returns the body of a response; empty without one. */
export const bodyOf = (response: ClientResponse): ResponseBody => ('body' in response ? response.body : {})

const nameOf = (response: ClientResponse) => `${response.status} ${bodyOf(response).code ?? ''}`.trim()

/** Returns the errors of a success: its ids must match the transaction's event. */
function problemWith(
  { kind, digest }: SignedIntent,
  body: ResponseBody,
  { byHash, resent }: { byHash: ReadonlyMap<Hex, Execution>; resent: Execution | undefined },
): string | undefined {
  const execution = (body.transactionHash && byHash.get(body.transactionHash)) ?? resent
  if (execution === undefined) return `there is no transaction ${body.transactionHash}`
  if (!execution.succeeded) return `${execution.hash} reverted`
  if (execution.digest !== digest) return `${execution.hash} carries another intent`
  if (kind === 'owner') return undefined
  const id = kind === 'register' ? 'agentId' : isOfOrders(kind) ? 'orderId' : 'positionId'
  return body[id] === execution[id] ? undefined : `it returned ${id} ${body[id]} instead of ${execution[id]}`
}

const isOfOrders = (kind: SignedIntent['kind']) => kind === 'order' || kind === 'cancel'

const saidAbout = ({ lostBlocks, statuses }: RunRecord, digest: Hex) =>
  lostBlocks ? `; in the end the service says ${JSON.stringify(statuses.get(digest))}` : ''

/**
 * Whether the service says in the end what became of an intent whose outcome it told. A reorg can undo an outcome if the owner's
 * message, or a foreign transaction at its nonce, is mined before the intent one time and after it the other time.
 */
function isCorrected(
  { lostBlocks, hasForeignUse, statuses }: RunRecord,
  { digest, kind, hasActiveOwner }: SignedIntent,
  executed: Execution | undefined,
): boolean {
  const status = statuses.get(digest)
  if (!lostBlocks || status === undefined || !(hasForeignUse || hasActiveOwner)) return false
  if (executed === undefined) return status.state === 'rejected' || status.state === 'reverted'
  const isExecuted = status.state === 'mined' || status.state === 'final'
  return (
    isExecuted &&
    (kind === 'register' || kind === 'owner' || isOfOrders(kind) || status.positionId === executed.positionId)
  )
}

/** Returns what is wrong with the payments: every registered agent has paid once, and no reverted settlement is repeated. */
function findPaymentViolations({ charges, intents, executions }: RunRecord): Violation[] {
  if (charges === undefined) return []
  const digests = new Set(intents.filter(({ kind }) => kind === 'register').map(({ digest }) => digest))
  const registered = executions.filter(({ digest, succeeded }) => succeeded && digest && digests.has(digest)).length
  const what = `${charges.paid} fees for ${registered} registrations`
  const repeated = charges.revertsByPayer.filter(reverts => reverts > 1)
  return [
    ...(charges.paid > registered ? [{ rule: 'charged twice', what } as const] : []),
    ...(charges.paid < registered ? [{ rule: 'registered without payment', what } as const] : []),
    ...repeated.map(
      reverts => ({ rule: 'settled again after a revert', what: `${reverts} reverts of one payer` }) as const,
    ),
  ]
}
