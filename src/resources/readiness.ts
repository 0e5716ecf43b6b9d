import { z } from 'zod'
import type { Block } from '../chain/chain.ts'
import type { LaneStatus } from '../executor/intent.ts'
import type { KeeperStatus } from '../keeper/keeper-status.ts'
import { addressOut, digits, unixSeconds } from './primitives.ts'

export const lane = z
  .object({
    address: addressOut.meta({ description: 'Account that sends' }),
    balanceWei: digits('Balance of the account in wei; null while the node has never answered').nullable(),
    pending: z.int().meta({ description: 'Transactions whose outcome is open' }),
    oldestPendingSeconds: z.int().meta({ description: 'Age of the oldest of them in seconds' }),
    depth: z.int().meta({ description: 'How many transactions it lets into flight at present; it adapts' }),
    paused: z.boolean().meta({ description: 'Nothing more is sent from the account' }),
    pausedFor: z
      .enum(['funds', 'shared key'])
      .nullable()
      .meta({ description: 'Why: it cannot pay for gas, or somebody else sends from it' }),
  })
  .meta({ id: 'Lane' })

export const presentLane = (status: LaneStatus): z.input<typeof lane> => ({
  address: status.address,
  balanceWei: status.balanceWei === undefined ? null : `${status.balanceWei}`,
  pending: status.pending,
  oldestPendingSeconds: status.oldestPendingSeconds,
  depth: status.depth,
  paused: status.pausedFor !== undefined,
  pausedFor: status.pausedFor ?? null,
})

export const presentKeeper = (status: KeeperStatus | undefined): z.input<typeof readiness>['keeper'] => ({
  configured: status !== undefined,
  lastEvaluation: status?.lastEvaluation ?? null,
  openPositions: status?.openPositions ?? 0,
  pendingExits: status?.pendingExits ?? 0,
  lanes: (status?.lanes ?? []).map(presentLane),
})

/** `reach` is the block that the history is indexed to. */
export const presentHistory = (reach: number | undefined, head: Block): z.input<typeof readiness>['history'] => ({
  cursor: reach === undefined ? null : `${reach}`,
  headBlock: `${head.number}`,
  lagBlocks: reach === undefined ? null : Math.max(0, Number(head.number) - reach),
})

export const readiness = z
  .object({
    status: z.enum(['ready']).meta({ description: 'A deployment that cannot trade answers 503 with the same look' }),
    service: z.string(),
    rpc: z.object({
      blockNumber: digits('Newest block'),
      blockTimestamp: unixSeconds('Time of the newest block'),
      lagSeconds: z.int().meta({ description: 'How far the newest block is behind the clock; seconds' }),
    }),
    contracts: z.object({ missing: z.array(z.string()).meta({ description: 'Configured contracts without code' }) }),
    executor: z.object({ configured: z.boolean(), lanes: z.array(lane) }),
    relayer: z.object({ configured: z.boolean(), lanes: z.array(lane) }),
    updater: z
      .object({ configured: z.boolean(), lanes: z.array(lane) })
      .meta({ description: 'What posts prices to the oracle' }),
    keeper: z
      .object({
        configured: z.boolean(),
        lastEvaluation: z
          .object({ blockNumber: digits('Block that it looked at'), at: unixSeconds('Time of that block') })
          .nullable()
          .meta({ description: 'Null when it has not looked yet' }),
        openPositions: z.int().meta({ description: 'Positions that it watches' }),
        pendingExits: z.int().meta({ description: 'Positions whose exit is on its way to the chain' }),
        lanes: z.array(lane),
      })
      .meta({ description: 'What fires exits on its own' }),
    history: z
      .object({
        cursor: digits('Block that the index is whole to; null before the first').nullable(),
        headBlock: digits('Newest block'),
        lagBlocks: z.int().nullable().meta({ description: 'Blocks between the two' }),
      })
      .meta({ description: 'What answers trades, closed positions and agents by owner' }),
    oracle: z.object({ stale: z.array(z.string()).meta({ description: 'Symbols without a fresh price' }) }),
    facilitator: z
      .object({
        kind: z.enum(['none', 'own', 'hosted', 'unusable']).meta({
          description: 'Who settles registration fees; unusable when they are to be paid and cannot be',
        }),
        reachable: z.boolean().meta({ description: 'Whether a hosted one answers; true where there is none' }),
      })
      .meta({ description: 'Payment of the registration fee' }),
    events: z
      .object({
        streams: z.int().meta({ description: 'Open streams of events' }),
        blockNumber: digits('Block to which they were told what happened').nullable(),
      })
      .meta({ description: 'What is told live' }),
    paused: z.object({ registry: z.boolean(), vaults: z.array(z.string()).meta({ description: 'Paused vaults' }) }),
    problems: z.array(z.string()).meta({ description: 'What an operator should look at though trading is possible' }),
  })
  .meta({ id: 'Readiness' })
