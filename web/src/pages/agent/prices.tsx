import type { ReadOutput } from '@agent-trading-service/client'
import { type Reading, useRead } from '../../data/use-read.ts'
import { type Choice, Choices, chosenIn } from '../../parts/choices.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, WhenReady } from '../../parts/states.tsx'
import { TokenPrices } from '../../parts/token-prices.tsx'
import { usePlace } from '../../router.tsx'
import { TRADES_OF_PAGE } from './trades.tsx'

type Props = { agentId: string; positions: Reading<ReadOutput<'listPositions'>>; now: number }

/**
 * The prices of a token with what the agent did: of its newest position or trade, unless the address names another one.
 */
export function Prices({ agentId, positions, now }: Props) {
  const { searchParams } = usePlace()
  const recent = useRead('getTradeHistory', { agentId, limit: TRADES_OF_PAGE })
  return (
    <Panel title="Prices and trades">
      <WhenReady resource={positions} what="the positions" lines={14}>
        {({ positions }) => (
          <WhenReady resource={recent} what="the trades" lines={14}>
            {({ trades }) => {
              const symbols = new Set([...positions.toReversed(), ...trades].map(({ symbol }) => symbol))
              const token: Choice = { name: 'symbol', label: 'Token', values: [...symbols].map(each => [each, each]) }
              const { symbol } = chosenIn([token], searchParams)
              return symbol ? (
                <>
                  <Choices label="Token of the chart" choices={[token]} />
                  <TokenPrices key={symbol} symbol={symbol} agentId={agentId} now={now} />
                </>
              ) : (
                <Empty title="No trade yet." />
              )
            }}
          </WhenReady>
        )}
      </WhenReady>
    </Panel>
  )
}
