import type { CorporateAction } from '@agent-trading-service/protocol/corporate-actions'
import { z } from 'zod'
import { present } from './present.ts'
import { addressOut, asOf, digits, hashOut, lagBlocks, unixSeconds } from './primitives.ts'
import { multiplierOut, presentMultiplier } from './token.ts'

const corporateAction = z
  .object({
    state: z
      .enum(['announced', 'effective', 'replaced'])
      .describe(
        'announced: takes effect later. effective: has taken effect. replaced: a later announcement or a cancellation came before it took effect',
      ),
    oldMultiplier: multiplierOut('How many shares one token stood for before'),
    newMultiplier: multiplierOut('How many shares one token stands for from effectiveAt on'),
    effectiveAt: unixSeconds(
      'The first block at or after it has the new multiplier; no transaction and no log says so',
    ),
    announcedAt: unixSeconds('When it was announced; as effectiveAt if it took effect at once'),
    blockNumber: digits('Block of the announcement'),
    logIndex: z.int(),
    transactionHash: hashOut,
  })
  .meta({ id: 'CorporateAction' })

export const corporateActionList = z
  .object({
    symbol: z.string(),
    token: addressOut,
    multiplier: multiplierOut('How many shares one token stands for now'),
    actions: z.array(corporateAction).describe('Newest first'),
    isExplained: z
      .boolean()
      .describe(
        'Whether the actions lead to the multiplier. If not, it changed before the index begins, or by an event that is unknown here',
      ),
    asOf,
    lagBlocks,
  })
  .meta({ id: 'CorporateActionList' })

/** Presents a corporate action as of a time in Unix seconds. A past time is never announced. */
export const presentCorporateAction = (action: CorporateAction, now: bigint): z.input<typeof corporateAction> =>
  present(corporateAction, {
    ...action,
    state: action.replaced ? 'replaced' : action.effectiveAt > now ? 'announced' : 'effective',
    oldMultiplier: presentMultiplier(action.oldMultiplier),
    newMultiplier: presentMultiplier(action.newMultiplier),
    blockNumber: action.block,
  })
