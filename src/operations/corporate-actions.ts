import { ONE_SHARE } from '@agent-trading-service/protocol/price-basis'
import { z } from 'zod'
import { readTree } from '../chain/read-tree.ts'
import { tokenFactCalls, toTokenFacts } from '../chain/token-facts.ts'
import { symbolsOf, tokenBySymbol } from '../chain/token-symbols.ts'
import type { HistoryContext } from '../history/client.ts'
import { corporateActionList, presentCorporateAction } from '../resources/corporate-action.ts'
import { symbol } from '../resources/intent-input.ts'
import { presentAsOf } from '../resources/primitives.ts'
import { presentMultiplier } from '../resources/token.ts'
import { defineOperation } from './define-operation.ts'

export const listCorporateActions = defineOperation(
  {
    id: 'listCorporateActions',
    tool: {
      name: 'svc_list_corporate_actions',
      set: 'venue',
      description:
        'Lists a token\'s splits and dividends, past and announced: each changes how many shares one token stands for. Example: {"symbol":"NVDA"}',
    },
    path: '/tokens/{symbol}/corporate-actions',
    tag: 'Prices',
    summary: "List a token's corporate actions",
    description:
      "Returns the changes of a token's multiplier since it was listed, past and announced. Balances, prices, entries and ladders are per token and go on without a step; only the shares that a token stands for change. A schedule that its issuer announced twice is one action.",
    params: z.object({ symbol }),
    cache: 'isolate',
    output: corporateActionList,
  },
  async ({ chain, history }: HistoryContext, { symbol }) => {
    const token = await tokenBySymbol(chain, symbol)
    const symbolOf = await symbolsOf(chain, [token])
    const { block, values } = await readTree(chain, tokenFactCalls(chain, token))
    const { multiplier } = toTokenFacts(values, block.timestamp)
    const { actions, asOf, lagBlocks } = await history.corporateActions(token, block)
    const last = actions.findLast(({ replaced, effectiveAt }) => !replaced && effectiveAt <= block.timestamp)
    return {
      symbol: symbolOf(token),
      token,
      multiplier: presentMultiplier(multiplier),
      actions: actions.map(action => presentCorporateAction(action, block.timestamp)).toReversed(),
      isExplained: multiplier === (last?.newMultiplier ?? ONE_SHARE),
      asOf: presentAsOf(asOf),
      lagBlocks,
    }
  },
)
