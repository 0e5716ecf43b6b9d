import { useLatest, useRead } from '../../data/use-read.ts'
import { DataTable } from '../../parts/data-table.tsx'
import { Pages, useListPage } from '../../parts/pages.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { tradeColumns } from '../../parts/trade-columns.tsx'

export const TRADES_OF_PAGE = 15

type TradesProps = { agentId: string; positionId?: string; symbol?: string }

/** The trades of an agent, in one of its positions or in a token, newest first, a page at a time. */
export function Trades({ agentId, positionId, symbol }: TradesProps) {
  const page = useListPage('trades')
  const { cursor } = page
  const trades = useRead('getTradeHistory', {
    agentId,
    limit: TRADES_OF_PAGE,
    ...(positionId !== undefined && { positionId }),
    ...(symbol !== undefined && { symbol }),
    ...(cursor !== undefined && { cursor }),
  })
  return (
    <WhenReady resource={useLatest(trades)} what="the trades" lines={5}>
      {({ trades, nextCursor }) => (
        <>
          <DataTable
            label="Trades"
            columns={tradeColumns({ agentIdOf: () => agentId, isOfOne: positionId !== undefined })}
            rows={trades}
            keyOf={({ id }) => id}
            empty={<Empty title="No trade yet.">Each trade appears here with the transaction that made it.</Empty>}
          />
          <Pages page={page} nextCursor={nextCursor} />
        </>
      )}
    </WhenReady>
  )
}
