import type { Hex } from 'viem'

type Body = { code?: string; agentId?: string; positionId?: string; transactionHash?: Hex }
/** What a client was told about one signed body; a request that got no answer is told nothing. */
export type Told = { status: number; body: Body } | { status: 'no answer' }

/** One signed body and all that was said about it, in order. */
export type Intent = {
  digest: Hex
  kind: 'register' | 'open' | 'add' | 'reduce' | 'ladder'
  /** The wish of the client that this body is one try at: a client signs anew when it is told that nothing was executed. */
  wish: string
  /** Whether it was posted twice at once: then one may be refused before the other becomes due, and the success counts. */
  hasTwin: boolean
  told: Told[]
}

/** A transaction of the service's accounts that is in a block, with the ids of its event. */
export type Execution = {
  hash: Hex
  /** Absent where it carries no intent. */
  digest?: Hex | undefined
  succeeded: boolean
  agentId?: string | undefined
  positionId?: string | undefined
}

export type AccountState = { address: string; mined: number; nonce: number; pendingNonce: number; inPool: number }

/** All that is known about a seed once everything has come to rest. */
export type History = {
  intents: Intent[]
  executions: Execution[]
  accounts: AccountState[]
  /** Whether the chain has lost blocks: what was in them may have been signed anew, with a higher fee or another nonce. */
  lostBlocks: boolean
  /** Everything that the service has printed and answered. */
  texts: string[]
  /** What must not be in any text. */
  secrets: string[]
}

export type Violation = { rule: Rule; what: string }
export type Rule =
  | 'executed twice'
  | 'wish granted twice'
  | 'false success'
  | 'false refusal'
  | 'no verdict'
  | 'not at rest'
  | 'unknown execution'
  | 'secret told'

/** What is wrong with a history; nothing, where every client was told the truth and every intent ran at most once. */
export function judge({ intents, executions, accounts, texts, secrets, lostBlocks }: History): Violation[] {
  const violations: Violation[] = []
  const report = (rule: Rule, what: string) => violations.push({ rule, what })
  const successes = Map.groupBy(
    executions.filter(({ succeeded }) => succeeded),
    ({ digest }) => digest,
  )
  const byHash = new Map(executions.map(execution => [execution.hash, execution]))

  for (const intent of intents) {
    const { digest, kind, told } = intent
    const name = `${kind} ${digest}`
    const executed = successes.get(digest) ?? []
    if (executed.length > 1) report('executed twice', `${name} in ${executed.map(({ hash }) => hash).join(', ')}`)
    for (const answer of told) {
      if (isSuccess(answer)) {
        const successor = lostBlocks ? executed[0] : undefined
        const problem = problemOf(intent, bodyOf(answer), { byHash, successor })
        if (problem) report('false success', `${name}: ${problem}`)
      } else if (isRefusal(answer) && executed.length > 0 && !(intent.hasTwin && told.some(isSuccess)))
        report('false refusal', `${name} was told ${told.map(nameOf).join(', ')} and is in ${executed[0]?.hash}`)
    }
    if (!told.some(answer => isSuccess(answer) || isRefusal(answer)))
      report('no verdict', `${name} was told ${told.map(nameOf).join(', ') || 'nothing'}`)
  }

  const granted = Map.groupBy(
    intents.filter(({ digest }) => successes.has(digest)),
    ({ wish }) => wish,
  )
  for (const [wish, bodies] of granted)
    if (bodies.length > 1) report('wish granted twice', `${wish} by ${bodies.map(({ digest }) => digest).join(', ')}`)
  const known = new Set(intents.map(({ digest }) => digest))
  for (const { digest, hash } of executions)
    if (digest !== undefined && !known.has(digest)) report('unknown execution', `${digest} in ${hash}`)

  for (const { address, mined, nonce, pendingNonce, inPool } of accounts)
    if (nonce !== mined || pendingNonce !== nonce || inPool > 0)
      report(
        'not at rest',
        `${address} has the nonce ${nonce}, ${mined} mined, ${pendingNonce} with pending ones, ${inPool} in the pool`,
      )
  for (const text of texts) {
    const secret = secrets.find(secret => text.includes(secret))
    if (secret !== undefined) report('secret told', text.slice(Math.max(0, text.indexOf(secret) - 60)).slice(0, 160))
  }
  return violations
}

export const isSuccess = ({ status }: Told): boolean => status === 200 || status === 201
/** A definite no: nothing was executed, and nothing will be. */
export const isRefusal = ({ status }: Told): boolean => typeof status === 'number' && status >= 400 && status < 500
/** The body of an answer; an empty one where there was none. */
export const bodyOf = (told: Told): Body => ('body' in told ? told.body : {})

const nameOf = (told: Told) => `${told.status} ${bodyOf(told).code ?? ''}`.trim()

/** What is not true of a success; the ids must be those of the transaction's own event. */
function problemOf(
  { kind, digest }: Intent,
  body: Body,
  { byHash, successor }: { byHash: ReadonlyMap<Hex, Execution>; successor: Execution | undefined },
): string | undefined {
  const execution = (body.transactionHash && byHash.get(body.transactionHash)) ?? successor
  if (execution === undefined) return `there is no transaction ${body.transactionHash}`
  if (!execution.succeeded) return `${execution.hash} reverted`
  if (execution.digest !== digest) return `${execution.hash} carries another intent`
  const id = kind === 'register' ? 'agentId' : 'positionId'
  return body[id] === execution[id] ? undefined : `it named ${id} ${body[id]}, which is ${execution[id]}`
}
