import { z } from 'zod'
import { getAgent } from '../chain/agents.ts'
import { readMarket } from '../chain/listings.ts'
import type { Context } from '../context.ts'
import type { Subject } from '../live/event.ts'
import { agentParams } from '../resources/agent.ts'
import { eventId } from '../resources/event-id.ts'
import type { Tag } from './define-operation.ts'
import { findVault } from './vaults.ts'

type Shape = z.ZodObject

/** A stream of server-sent events: over HTTP alone, beside the operations in every list of endpoints. */
export type Stream<P extends Shape | undefined = Shape | undefined, Q extends Shape = Shape> = {
  id: string
  method: 'get'
  path: `/${string}`
  tag: Tag
  summary: string
  description: string
  tool?: never
  params?: P
  query: Q
  errors: readonly number[]
  /** Whose events they are. Throws the refusal where there is none such. */
  subject: (context: Context, input: never) => Promise<Subject>
}

function defineStream<const P extends Shape | undefined, const Q extends Shape>(
  definition: Omit<Stream<P, Q>, 'subject'>,
  subject: (context: Context, input: (P extends Shape ? z.output<P> : unknown) & z.output<Q>) => Promise<Subject>,
) {
  return { ...definition, subject } as const
}

const lastEventId = eventId.optional().meta({
  description: 'As the header Last-Event-ID, for a first connection: the stream goes on after that event',
})

const streamAgentEvents = defineStream(
  {
    id: 'streamAgentEvents',
    method: 'get',
    path: '/agents/{agentId}/events',
    tag: 'Live',
    summary: "An agent's events, as they happen",
    description:
      'Server-sent events: its trades, fired exits, changed ladders, intents, reached limits and stale prices. See GET /events.',
    params: agentParams,
    query: z.object({ lastEventId }),
    errors: [400, 404, 500, 502, 503],
  },
  async ({ trading }, { agentId }) => {
    await getAgent(trading, agentId)
    return { agentId: Number(agentId) }
  },
)

const streamEvents = defineStream(
  {
    id: 'streamEvents',
    method: 'get',
    path: '/events',
    tag: 'Live',
    summary: 'Events of a vault or of everybody, as they happen',
    description: `Server-sent events. Each has in \`event\` its kind and in \`data\` JSON with the agentId:
- \`trade\`, \`exit\`, \`ladder\`: the record of GET /agents/{agentId}/trades; exit where a rule has fired, ladder where the rules were changed;
- \`intent\`: a signed intent in a new state, as GET /intents/{digest} answers it, without the ids of its result; a state that lasts less than a fifth of a second may be passed over;
- \`risk\`: a limit that is reached (\`breached\` true) or left again, as \`breaches\` of the risk state has it, in \`rule\`;
- \`price-stale\`, \`price-fresh\`: of a token in which the agent has an open position;
- \`reorg\`: the chain took back what came after \`commonAncestor\`; \`withdrawn\` has the ids of events to be forgotten; what became of them follows.
The id is block and index of the event's log. What is no log has an index from ${1_000_000} on. Where the chain comes to a place for a second time, the number of the branch follows a dot. With the id of the last event in Last-Event-ID the stream goes on after it, without loss or repetition; \`<block>-999999\` stands for the end of a block, such as that of \`asOf\`. A comment every 15 seconds says that the stream lives.`,
    query: z.object({
      vault: z
        .string()
        .min(1)
        .max(128)
        .optional()
        .meta({ description: 'Slug or contract address; everything without' }),
      lastEventId,
    }),
    errors: [400, 404, 500, 502, 503],
  },
  async ({ trading }, { vault }) =>
    vault === undefined ? {} : { vault: findVault((await readMarket(trading)).market, vault).address },
)

export const streams = [streamAgentEvents, streamEvents] as const satisfies readonly Stream[]
