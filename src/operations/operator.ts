import { type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'
import { z } from 'zod'
import { assertOperator } from '../call.ts'
import { readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import type { HistoryContext } from '../history/client.ts'
import { logEvent } from '../log.ts'
import { intakeChange, intakeState, presentIntake } from '../resources/intake.ts'
import { present } from '../resources/present.ts'
import { address, addressOut, digits } from '../resources/primitives.ts'
import { webhookList } from '../resources/webhook.ts'
import { presentWebhooks } from '../webhooks/present-webhook.ts'
import { defineOperation } from './define-operation.ts'

const names = (description: string) => z.array(z.string()).describe(description)

/** How far the index is, and the state of its database. */
const indexState = z
  .object({
    startBlock: digits('Block from which the index reads'),
    cursor: digits('Last indexed block; null before the first').nullable(),
    headBlock: digits('Newest block'),
    lagBlocks: z.int().nullable().describe('Blocks from cursor to headBlock'),
    migrations: z.object({
      applied: names('Migrations that the database has'),
      pending: names('Migrations that the indexer applies when it starts; one that stays here fails'),
      unknown: names(
        'Migrations that the database has and this version lacks: a file was renamed, or the version is older',
      ),
    }),
  })
  .meta({ id: 'IndexState' })

// No tools: a model that trades has no business with them.

/** What all of them have in common; each checks the operator's secret first. */
const operatorOnly = { tag: 'Operator', security: 'operator' } as const

export const getIntake = defineOperation(
  {
    id: 'getIntake',
    path: '/operator/intake',
    ...operatorOnly,
    summary: 'Show which kinds of intake are open',
    description:
      "Returns every kind of intake and whether it is open. Requires the operator's secret as a bearer token.",
    output: intakeState,
    errors: [401, 503],
  },
  async (context: Context, _, call) => {
    assertOperator(context.config, call)
    return presentIntake(await context.intakeSwitches.closures())
  },
)

export const setIntake = defineOperation(
  {
    id: 'setIntake',
    method: 'put',
    path: '/operator/intake',
    ...operatorOnly,
    summary: 'Close or open kinds of intake',
    description:
      "Closes or opens the named kinds of intake; the others stay as they are. It is in force in all isolates after two seconds, without a deploy, and stays until it is changed. A request of a closed kind is refused with INTAKE_CLOSED and the reason; what was accepted before is completed, and reads go on. Requires the operator's secret as a bearer token.",
    body: intakeChange,
    readsOnly: true,
    output: intakeState,
    errors: [401, 503],
  },
  async (context: Context, given, call) => {
    assertOperator(context.config, call)
    const changes = (Object.keys(intakeKinds) as IntakeKind[]).flatMap(kind => {
      const change = given[kind]
      return change ? [{ kind, reason: change.open ? null : (change.reason ?? '') }] : []
    })
    const closures = await context.intakeSwitches.change(changes)
    logEvent('intake changed', { closed: closures.map(({ kind }) => kind).join(' ') || 'none' })
    return presentIntake(closures)
  },
)

export const getIndex = defineOperation(
  {
    id: 'getIndex',
    path: '/operator/index',
    ...operatorOnly,
    summary: 'Show how far the index is',
    description:
      "Returns the cursor of the index, the newest block, and which migrations the database has. Requires the operator's secret as a bearer token.",
    output: indexState,
    errors: [401, 502, 503],
  },
  async (context: Context, _, call) => {
    assertOperator(context.config, call)
    return readIndex(context)
  },
)

export const replayIndex = defineOperation(
  {
    id: 'replayIndex',
    method: 'post',
    path: '/operator/index/replay',
    ...operatorOnly,
    summary: 'Build the index and the event log again',
    description:
      "Drops what the index has from events, and withdraws every event of the event log with a reorg that has no common ancestor. Both are read from the chain again; samples of equity and share prices stay. Until the index is complete, reads of it state lagBlocks or are refused with HISTORY_UNAVAILABLE. Trading goes on. Requires the operator's secret as a bearer token.",
    readsOnly: true,
    output: indexState,
    errors: [401, 502, 503],
  },
  async (context: Context, _, call) => {
    assertOperator(context.config, call)
    await context.history.replay()
    logEvent('index replayed', {})
    return readIndex(context)
  },
)

const lane = z.object({
  address: addressOut.describe('The account of the lane'),
  wasPaused: z.boolean().describe('Whether foreign use of its key had paused the lane'),
})

export const resumeLane = defineOperation(
  {
    id: 'resumeLane',
    method: 'post',
    path: '/operator/lanes/{address}/resume',
    ...operatorOnly,
    summary: 'Resume a lane after others used its key',
    description:
      "Forgets the foreign use of an account's key, so that its lane accepts intents again at once instead of ten minutes later. Stop the second copy of the service first: two further foreign transactions pause the lane again. Requires the operator's secret as a bearer token.",
    params: z.object({ address: address.describe('The account of the lane') }),
    readsOnly: true,
    output: lane.meta({ id: 'ResumedLane' }),
    errors: [401, 404, 503],
  },
  async (context: Context, { address }, call) => {
    assertOperator(context.config, call)
    const wasPaused = await context.journals.resume(address)
    if (wasPaused === undefined) throw refuse('LANE_NOT_FOUND', { address })
    logEvent('lane resumed', { executor: address })
    return { address, wasPaused }
  },
)

async function readIndex({ chain, history }: HistoryContext) {
  const [{ block }, reach, migrations] = await Promise.all([
    readTree(chain, {}),
    history.cursor(),
    history.migrations(),
  ])
  return present(indexState, {
    startBlock: chain.startBlock,
    cursor: reach?.block,
    headBlock: block.number,
    lagBlocks: reach && Math.max(0, Number(block.number) - reach.block),
    migrations,
  })
}

/** How many agents a list of places shows: those that take most. */
const AGENTS_SHOWN = 100

const webhookPlaces = z
  .object({
    maxPlaces: z.int().describe('MAX_WEBHOOKS'),
    places: z
      .int()
      .describe(
        'Places taken: by active webhooks that have not failed for an hour. More than maxPlaces are taken if agents have no more than one',
      ),
    agents: z
      .array(
        z.object({
          agentId: digits('Agent id'),
          active: z.int().describe('Its active webhooks'),
          places: z.int().describe('The places that they take'),
        }),
      )
      .describe(`The ${AGENTS_SHOWN} agents that take most places`),
  })
  .meta({ id: 'WebhookPlaces' })

export const getWebhookPlaces = defineOperation(
  {
    id: 'getWebhookPlaces',
    path: '/operator/webhooks',
    ...operatorOnly,
    summary: 'Show which agents take the places for webhooks',
    description:
      "Returns how many of the deployment's places for webhooks are taken, and by which agents. Requires the operator's secret as a bearer token.",
    output: webhookPlaces,
    errors: [401, 503],
  },
  async (context: Context, _, call) => {
    assertOperator(context.config, call)
    const { webhooks, config } = context
    const { places, agents } = await webhooks.usage(AGENTS_SHOWN)
    return {
      maxPlaces: config.webhooks?.maxWebhooks ?? 0,
      places,
      agents: agents.map(({ agentId, ...counts }) => ({ agentId: `${agentId}`, ...counts })),
    }
  },
)

export const getWebhooksOfAgent = defineOperation(
  {
    id: 'getWebhooksOfAgent',
    path: '/operator/webhooks/{agentId}',
    ...operatorOnly,
    summary: 'Show the webhooks of an agent',
    description:
      "Returns all webhooks of an agent, without secrets: where they post, and which fail. Requires the operator's secret as a bearer token.",
    output: webhookList,
    errors: [401, 503],
  },
  async (context: Context, { agentId }, call) => {
    assertOperator(context.config, call)
    return presentWebhooks(agentId, await context.webhooks.list(agentId, 'owner'))
  },
)

export const freeWebhooks = defineOperation(
  {
    id: 'freeWebhooks',
    method: 'post',
    path: '/operator/webhooks/{agentId}/free',
    ...operatorOnly,
    summary: 'Free the places that the webhooks of an agent take',
    description:
      "Disables the active webhooks of an agent with a reason that its owner reads, and returns all of its webhooks. The owner can enable one again, and more if there are places. Requires the operator's secret as a bearer token.",
    body: z.object({
      reason: z
        .string()
        .min(1)
        .max(300)
        .meta({ description: 'Why, as the owner reads it', example: 'It was not used.' }),
    }),
    readsOnly: true,
    output: webhookList,
    errors: [401, 503],
  },
  async (context: Context, { agentId, reason }, call) => {
    assertOperator(context.config, call)
    const webhooks = await context.webhooks.disableAll(agentId, `The operator disabled it: ${reason}`)
    logEvent('webhooks freed', { agentId: `${agentId}` })
    return presentWebhooks(agentId, webhooks)
  },
)
