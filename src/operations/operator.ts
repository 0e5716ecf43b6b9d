import { type IntakeKind, intakeKinds } from '@agent-trading-service/protocol/intake-kind'
import { z } from 'zod'
import { assertOperator } from '../call.ts'
import type { Block } from '../chain/configured-chain.ts'
import { readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'
import { intakeChange, intakeState, presentIntake } from '../resources/intake.ts'
import { digits } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const names = (description: string) => z.array(z.string()).meta({ description })

/** How far the index is, and the state of its database. */
const indexState = z
  .object({
    startBlock: digits('Block from which the index reads'),
    cursor: digits('Last indexed block; null before the first').nullable(),
    headBlock: digits('Newest block'),
    lagBlocks: z.int().nullable().meta({ description: 'Blocks from cursor to headBlock' }),
    migrations: z.object({
      applied: names('Migrations that the database has'),
      pending: names('Migrations that the indexer applies when it starts'),
    }),
  })
  .meta({ id: 'IndexState' })

const presentIndex = ({
  startBlock,
  reach,
  head,
  migrations,
}: {
  startBlock: bigint
  reach: { block: number } | undefined
  head: Block
  migrations: { applied: string[]; pending: string[] }
}): z.input<typeof indexState> => ({
  startBlock: `${startBlock}`,
  cursor: reach === undefined ? null : `${reach.block}`,
  headBlock: `${head.number}`,
  lagBlocks: reach === undefined ? null : Math.max(0, Number(head.number) - reach.block),
  migrations,
})

// No tools: a model that trades has no business with them.

export const getIntake = defineOperation(
  {
    id: 'getIntake',
    method: 'get',
    path: '/operator/intake',
    tag: 'Operator',
    summary: 'Show which kinds of intake are open',
    description:
      "Returns every kind of intake and whether it is open. Requires the operator's secret as a bearer token.",
    security: 'operator',
    cache: 'none',
    status: 200,
    output: intakeState,
    errors: [401, 503],
  },
  async (context, _, call) => {
    assertOperator(context.config, call)
    return presentIntake(await context.intakeSwitches.closures())
  },
)

export const setIntake = defineOperation(
  {
    id: 'setIntake',
    method: 'put',
    path: '/operator/intake',
    tag: 'Operator',
    summary: 'Close or open kinds of intake',
    description:
      "Closes or opens the named kinds of intake; the others stay as they are. It is in force in all isolates after two seconds, without a deploy, and stays until it is changed. A request of a closed kind is refused with INTAKE_CLOSED and the reason; what was accepted before is completed, and reads go on. Requires the operator's secret as a bearer token.",
    security: 'operator',
    body: intakeChange,
    readsOnly: true,
    cache: 'none',
    status: 200,
    output: intakeState,
    errors: [401, 503],
  },
  async (context, given, call) => {
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

// No tools: a model that trades has no business with them.

export const getIndex = defineOperation(
  {
    id: 'getIndex',
    method: 'get',
    path: '/operator/index',
    tag: 'Operator',
    summary: 'Show how far the index is',
    description:
      "Returns the cursor of the index, the newest block, and which migrations the database has. Requires the operator's secret as a bearer token.",
    security: 'operator',
    cache: 'none',
    status: 200,
    output: indexState,
    errors: [401, 502, 503],
  },
  async (context, _, call) => {
    assertOperator(context.config, call)
    return readIndex(context)
  },
)

export const replayIndex = defineOperation(
  {
    id: 'replayIndex',
    method: 'post',
    path: '/operator/index/replay',
    tag: 'Operator',
    summary: 'Build the index and the event log again',
    description:
      "Drops what the index has from events, and withdraws every event of the event log with a reorg that has no common ancestor. Both are read from the chain again; samples of equity and share prices stay. Until the index is complete, reads of it state lagBlocks or are refused with HISTORY_UNAVAILABLE. Trading goes on. Requires the operator's secret as a bearer token.",
    security: 'operator',
    readsOnly: true,
    cache: 'none',
    status: 200,
    output: indexState,
    errors: [401, 502, 503],
  },
  async (context, _, call) => {
    assertOperator(context.config, call)
    await context.history.replay()
    logEvent('index replayed', {})
    return readIndex(context)
  },
)

async function readIndex({ chain, history }: Context) {
  const [{ block }, reach, migrations] = await Promise.all([
    readTree(chain, {}),
    history.cursor(),
    history.migrations(),
  ])
  return presentIndex({ startBlock: chain.startBlock, reach, head: block, migrations })
}
