import { useState } from 'preact/hooks'
import { useRead } from '../../data/use-read.ts'
import { Percent, Price, Usdc } from '../../parts/figures.tsx'
import { TableScroll } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { CapitalMode } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { Pages } from './trades.tsx'

const PAGE_SIZE = 10

/** The closed positions of an agent, newest first. */
export function ClosedPositions({ agentId }: { agentId: string }) {
  const [cursors, setCursors] = useState<string[]>([])
  const cursor = cursors.at(-1)
  const closed = useRead('listClosedPositions', { agentId, limit: PAGE_SIZE, ...(cursor && { cursor }) })
  return (
    <WhenReady resource={closed} what="the closed positions">
      {({ positions, nextCursor }) => (
        <>
          {positions.length === 0 ? (
            <Empty title="No closed position yet." />
          ) : (
            <TableScroll label="Closed positions">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Position</th>
                    <th scope="col">Opened</th>
                    <th scope="col" class="right">
                      Entry
                    </th>
                    <th scope="col" class="right">
                      Realized
                    </th>
                    <th scope="col" class="right">
                      Return
                    </th>
                    <th scope="col">Capital</th>
                  </tr>
                </thead>
                <tbody>
                  {positions.map(position => (
                    <tr key={position.positionId}>
                      <th scope="row">
                        <a href={`/app/agents/${agentId}/positions/${position.positionId}`}>
                          {position.symbol} <span class="fine">#{position.positionId}</span>
                        </a>
                      </th>
                      <td>
                        <Time value={position.openedAt} />
                      </td>
                      <td class="right">
                        <Price usd={`${Number(position.entryPriceUsdc) / 1e6}`} />
                      </td>
                      <td class="right">
                        <Usdc value={position.realizedPnlUsdc} signed />
                      </td>
                      <td class="right">
                        <Percent bps={position.derived.returnBps} signed />
                      </td>
                      <td>
                        <CapitalMode mode={position.capitalMode} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </TableScroll>
          )}
          <Pages
            hasNewer={cursors.length > 0}
            onNewer={() => setCursors(cursors.slice(0, -1))}
            onOlder={nextCursor === null ? undefined : () => setCursors([...cursors, nextCursor])}
          />
        </>
      )}
    </WhenReady>
  )
}
