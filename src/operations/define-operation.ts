import { z } from 'zod'
import type { Context } from '../context.ts'
import { refuse } from '../errors/catalogue.ts'
import { type PaymentAnswer, Refusal } from '../errors/refusal.ts'
import type { CacheableResponse } from '../read-cache.ts'

type Shape = z.ZodObject

/** An answer whose status differs from the operation's own, such as the 200 of a registration that was made before. */
export class Reply<T> {
  readonly status: 200 | 201
  readonly body: T
  readonly payment: PaymentAnswer | undefined
  constructor(status: 200 | 201, body: T, payment?: PaymentAnswer) {
    this.status = status
    this.body = body
    this.payment = payment
  }
}

type Flat<P, Q, B> = (P extends Shape ? z.output<P> : unknown) &
  (Q extends Shape ? z.output<Q> : unknown) &
  (B extends Shape ? z.output<B> : unknown)

/** What one operation is, on every surface: the row from which its route, its OpenAPI entry and its tool are made. */
export type Definition<
  P extends Shape | undefined = Shape | undefined,
  Q extends Shape | undefined = Shape | undefined,
  B extends Shape | undefined = Shape | undefined,
  O extends z.ZodType = z.ZodType,
> = {
  /** OpenAPI operation id; the tool's name is `svc_` and its snake case. */
  id: string
  /** Absent where the operation is no tool. */
  tool?: `svc_${string}`
  method: 'get' | 'post'
  path: `/${string}`
  tag: Tag
  summary: string
  description: string
  params?: P
  query?: Q
  body?: B
  /** A body that may be left out altogether; every field of it is optional. */
  bodyIsOptional?: true
  /** Over HTTP a bearer token is asked for where the deployment has a secret. */
  security?: 'bearer'
  /** Over HTTP `?format=md` and `Accept: text/markdown` answer the output rendered as markdown. */
  markdown?: (output: z.input<O>) => string
  /** Over HTTP `?format=csv` and `Accept: text/csv` answer the list of that name as CSV, a column for each field. */
  csv?: keyof z.input<O> & string
  /**
   * The answer follows from the input and the newest block, and no intent of an agent changes it: an isolate may give it
   * again while it knows of no newer block. What an agent trades by is read anew each time.
   */
  remembered?: true
  status: 200 | 201
  output: O
  errors: readonly number[]
}

/** The chapters of the API description, in reading order. */
export const tags = {
  Discovery: 'What this deployment is, and whether it can work.',
  Vaults: 'Thematic vaults, the risk policy of their tracks, and the tokens that they allow.',
  Prices: 'Prices of the on-chain oracle in US dollars.',
  Agents: 'Registration of agents, their records and their ERC-8004 identities.',
  Trading: 'Quotes and signed intents: fetch a quote, sign its typed data, post its body with the signature.',
  Positions: 'Positions of an agent, its risk state and what it has traded.',
  Live: 'What happens, as it happens: server-sent events.',
  Transactions: 'What became of a transaction.',
  Signing: 'Help with EIP-712 signatures; nothing here reaches the chain.',
} as const
export type Tag = keyof typeof tags

export type Operation = Omit<Definition, 'markdown' | 'csv'> & {
  markdown?: (output: never) => string
  csv?: string
  /** Path, query and body in one flat object; unknown fields are refused. */
  input: z.ZodType
  /** Parses flat raw input (path, query and body in one object); throws the refusal INVALID_REQUEST. */
  parse: (input: unknown) => Record<string, unknown>
  /** Runs with parsed input and answers what `output` describes. */
  run: (context: Context, input: never) => Promise<unknown>
}

/** Defines an operation once; two arguments, so that `run` sees the parsed types. */
export function defineOperation<
  const P extends Shape | undefined,
  const Q extends Shape | undefined,
  const B extends Shape | undefined,
  O extends z.ZodType,
  const Id extends string,
  const Tool extends `svc_${string}` = never,
>(
  definition: Definition<P, Q, B, O> & { id: Id; tool?: Tool },
  run: (context: Context, input: Flat<P, Q, B>) => Promise<z.input<O> | Reply<z.input<O>>>,
) {
  const input = z.strictObject({
    ...definition.params?.shape,
    ...definition.query?.shape,
    ...definition.body?.shape,
  })
  const parse = (given: unknown) => {
    const result = input.safeParse(given)
    if (!result.success) throw invalidRequest(result.error.issues)
    return result.data as Record<string, unknown>
  }
  const recall = (context: Context, asked: Flat<P, Q, B>) => {
    const key = `${definition.id} ${JSON.stringify(asked, (_, value) => (typeof value === 'bigint' ? `${value}` : value))}`
    return context.readCache.getOrRead(key, () => run(context, asked) as Promise<CacheableResponse>) as ReturnType<
      typeof run
    >
  }
  return { ...definition, input, parse, run: definition.remembered ? recall : run } as const
}

type Issue = { path: PropertyKey[]; message: string; code?: string; keys?: string[] }

/** The refusal of input that does not parse: the first problem in words, all of them in `details`. */
export function invalidRequest(issues: readonly Issue[]): Refusal {
  const problems = issues.slice(0, 10).map(({ path, message }) => ({ path: path.join('.'), problem: message }))
  const [first] = problems
  const problem =
    first === undefined ? 'it does not parse' : first.path === '' ? first.problem : `${first.path}: ${first.problem}`
  return refuse('INVALID_REQUEST', { problem, problems })
}

/** Any error as a refusal: its own when it is one, INTERNAL with the error as cause when it is not. */
export const toRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : refuse('INTERNAL', {}, { cause: error })
