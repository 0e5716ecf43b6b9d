import { z } from 'zod'
import { getAgent } from '../chain/agents.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { findVault } from '../chain/find-vault.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { tokensBySymbols } from '../chain/token-symbols.ts'
import type { EventFilter } from '../live/event.ts'
import { HEARTBEAT_SECONDS } from '../live/subscribers.ts'
import { agentParams } from '../resources/agent.ts'
import { eventId, FIRST_OFF_CHAIN_INDEX } from '../resources/event-id.ts'
import { symbolList } from '../resources/price.ts'
import { digitsAsNumber } from '../resources/primitives.ts'
import { defineEventStream } from './define-operation.ts'

const after = eventId.optional().meta({
  description: 'Resume after the event with this id, as the header Last-Event-ID does, which wins',
  example: undefined,
})

const heartbeat = digitsAsNumber(z.int().min(4).max(60)).default(HEARTBEAT_SECONDS).meta({
  description: 'The most seconds without a sign of life, 4 to 60; less than the read timeout of your library',
  example: HEARTBEAT_SECONDS,
})

const symbols = symbolList.optional().meta({
  description: 'Adds the posted prices and corporate actions of these tokens; symbols separated by commas',
  example: 'NVDA,AAPL',
  'x-list': 'comma',
})

/**
 * Returns the part of a filter for prices. Its order is fixed, so that equal filters are one. Throws UNKNOWN_SYMBOL.
 */
export async function pricesOf(chain: Chain, symbols: readonly string[] | undefined): Promise<EventFilter> {
  return symbols === undefined ? {} : { tokens: [...new Set(await tokensBySymbols(chain, symbols))].sort() }
}

export const streamAgentEvents = defineEventStream(
  {
    id: 'streamAgentEvents',
    path: '/agents/{agentId}/events',
    tag: 'Live',
    summary: 'Stream the events of an agent',
    description:
      "Server-sent events about one agent: trades, fired exits, ladder changes, orders, mandates, intents, breached limits and stale prices. See GET /events for the events' format.",
    params: agentParams,
    query: z.object({ symbols, after, heartbeat }),
  },
  async ({ trading }, { agentId, symbols }) => {
    await getAgent(trading, agentId)
    return { agentId: Number(agentId), ...(await pricesOf(trading, symbols)) }
  },
)

export const streamEvents = defineEventStream(
  {
    id: 'streamEvents',
    path: '/events',
    tag: 'Live',
    summary: 'Stream the events of a vault or of all agents',
    description: `Server-sent events. \`event\` is the type; \`data\` is JSON with the agentId:
- \`trade\`, \`exit\`, \`ladder\`: a record of GET /agents/{agentId}/trades. exit: a rule fired. ladder: the rules changed;
- \`order\`: an order was placed, executed in part or in full, or ended; \`type\` is OrderPlaced (with its terms), OrderExecuted (\`part\`, \`positionId\`, \`amount\`) or OrderEnded (\`reason\`). What it traded is a \`trade\` of its own;
- \`mandate\`: who controls the agent or what its owner allows has changed. \`type\` is MandateUpdated (with \`mandate\`), BuyingStopped, CloseAllStarted (with \`closingSince\`), CloseAllEnded, OwnershipOffered (\`to\` is null if the offer was withdrawn), AgentOwnershipTransferred, AgentSignerUpdated or IntentsCancelled (\`fromNonce\` up to below \`untilNonce\`);
- \`intent\`: an intent for which a transaction was signed changed its state; the fields of GET /intents/{digest} without the ids of its result. States on the way there that last less than a second may be skipped. An intent that is refused before that causes no event; the response of its submission says why;
- \`risk\`: a limit was breached (\`breached\` is true) or is no longer breached. \`rule\` is its name in \`breaches\` of the risk state;
- \`price-stale\`, \`price-fresh\`: the price of a token in which the agent has an open position. \`market\` is its session: while it is closed, prices grow old and nothing is wrong;
- \`corporateAction\`: the multiplier of a token in which the agent has an open position changes, or, without an agentId, of one of the tokens in \`symbols\`. \`state\` is announced, effective or replaced, as in GET /tokens/{symbol}/corporate-actions;
- \`price\`: a price that the oracle posted, of the tokens in \`symbols\`, with its block and its \`source\`, as in GET /prices. A client far behind gets only the newest of each token; GET /prices/{symbol}/candles has the others;
- \`reorg\`: the chain dropped the blocks after \`commonAncestor\`. \`withdrawn\` lists the ids of the events to discard; the events of the new blocks follow.
The id is the block number and the log index. Events that do not come from a log are numbered from ${FIRST_OFF_CHAIN_INDEX} within their block. If a reorg reuses a position, the id ends in \`.<branch>\`. Send the id of the last event as \`after\`, or in the header Last-Event-ID, to resume after it, without loss or repetition; \`<block>-999999\` resumes after a whole block, such as the one in \`asOf\`. A stream begins with a \`position\` (\`id\`, \`blockNumber\`), so its id resumes although no event came, and has one from time to time. A comment after at most \`heartbeat\` seconds keeps the connection open.`,
    query: z.object({
      vault: z
        .string()
        .min(1)
        .max(128)
        .optional()
        .describe('Slug or contract address; without it, the events of all agents'),
      symbols: symbols.meta({
        description:
          'Adds the posted prices and corporate actions of these tokens. Without `vault`, the stream has nothing else',
        example: 'NVDA,AAPL',
        'x-list': 'comma',
      }),
      after,
      heartbeat,
    }),
  },
  async ({ trading }, { vault, symbols }) => ({
    ...(vault !== undefined && { vault: findVault((await readVaultsAndTokens(trading)).registered, vault).address }),
    ...(await pricesOf(trading, symbols)),
  }),
)
