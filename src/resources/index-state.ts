import { z } from 'zod'
import type { Block } from '../chain/block-type.ts'
import { digits } from './primitives.ts'

const names = (description: string) => z.array(z.string()).meta({ description })

/** How far the index is, and the state of its database. */
export const indexState = z
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

export const presentIndex = ({
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
