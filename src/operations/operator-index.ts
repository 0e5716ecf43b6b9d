import { readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'
import { indexState, presentIndex } from '../resources/index-state.ts'
import { assertOperator } from './bearer-check.ts'
import { defineOperation } from './define-operation.ts'

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
    assertOperator(context, call)
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
    assertOperator(context, call)
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
