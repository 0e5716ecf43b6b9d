import { useEffect, useState } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { useDeployment } from '../parts/deployment.tsx'
import { Calls, Effects } from '../parts/described.tsx'
import { Facts, PageTitle, Panel } from '../parts/panel.tsx'
import { WhenReady } from '../parts/states.tsx'
import { type Step, Steps } from '../parts/steps.tsx'
import { Address, AgentName, Badge, Hash, shortened } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { nameOfTrade, tradeColumns } from '../parts/trade-columns.tsx'

type Transaction = Schema['TransactionStatus']

const POLL_MS = 3_000
const MAX_PAGE = 100
const STATES = {
  replaced: ['bad', 'replaced'],
  pending: ['quiet', 'pending'],
  success: ['good', 'executed'],
  reverted: ['bad', 'reverted'],
} as const

/** One transaction: whether it is included, and what became of it. */
export function TransactionPage({ params: { hash = '' } }: PageProps) {
  const { explorer, contracts } = useDeployment()
  useLive({})
  const transaction = useRead('getTransaction', { txHash: hash }, { pollMs: POLL_MS })
  const block = transaction.data?.status === 'success' ? transaction.data.blockNumber : undefined
  const trades = useTradesOf(transaction.data?.transactionHash, block)
  const contract = Object.keys(contracts).find(name => contracts[name] === transaction.data?.to)
  return (
    <WhenReady resource={transaction} what="this transaction" lines={6} title="Transaction">
      {transaction => (
        <>
          <PageTitle
            kicker={`Transaction ${shortened(transaction.transactionHash)}`}
            title={titleOf(block === undefined ? [] : trades, transaction, contract)}
            aside={<State of={transaction} />}
          />
          {trades && trades.length > 0 && (
            <Panel title="What it did" flush>
              <DataTable label="Trades" columns={TRADE_COLUMNS} rows={trades} keyOf={({ id }) => id} />
            </Panel>
          )}
          {transaction.calls && transaction.calls.length > 0 && (
            <Panel title="What it asked for">
              <Calls calls={transaction.calls} />
            </Panel>
          )}
          {transaction.effects && transaction.effects.length > 0 && (
            <Panel title="What came of it">
              <Effects effects={transaction.effects} calls={transaction.calls} />
            </Panel>
          )}
          <Panel title="Life">
            <Steps steps={stepsOf(transaction)} />
            {transaction.error && (
              <div class="failure">
                <strong>{transaction.error.message}</strong>
                <p class="fine hex">{transaction.error.code}</p>
              </div>
            )}
          </Panel>
          <Panel
            title="Facts"
            aside={
              explorer && (
                <a href={`${explorer}/tx/${transaction.transactionHash}`} target="_blank" rel="noreferrer noopener">
                  Block explorer
                </a>
              )
            }
          >
            <Facts
              items={[
                ['Hash', <Hash key="hash" value={transaction.transactionHash} />],
                ['From', <Address key="from" value={transaction.from} whole />],
                ['To', transaction.to ? <Address key="to" value={transaction.to} whole /> : 'a new contract'],
                ...(contract === undefined ? [] : [['Contract', contract] as [string, string]]),
              ]}
            />
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

function State({ of: { status, replacedBy } }: { of: Transaction }) {
  const [tone, name] = STATES[replacedBy === undefined ? status : 'replaced']
  return <Badge tone={tone}>{name}</Badge>
}

/** The trades of a transaction, from the list of all trades from its block on, page by page; undefined at first. */
function useTradesOf(hash: string | undefined, block: string | undefined): Schema['FeedTrade'][] | undefined {
  const [walked, setWalked] = useState<{ block?: string; next: string; found: Schema['FeedTrade'][] }>()
  const before = walked?.block === block ? walked : undefined
  const cursor = block === undefined ? undefined : (before?.next ?? cursorAfter(block))
  const { data } = useRead('listTrades', cursor === undefined ? undefined : { cursor, limit: MAX_PAGE })
  const onPage = data?.trades.filter(({ transactionHash }) => transactionHash === hash) ?? []
  const found = [...(before?.found ?? []), ...onPage]
  const more = data?.trades.at(-1)?.blockNumber === block ? data?.nextCursor : null
  useEffect(() => {
    if (block && more) setWalked({ block, next: more, found })
  }, [more])
  return data === undefined || more ? undefined : found
}

/** The cursor of the list of trades that begins with those of a block. */
const cursorAfter = (block: string) => btoa(`${BigInt(block) + 1n}-0`).replace(/=+$/, '')

/** Says in short what a transaction did: its trade, else what it asked for or at least which contract it called. */
function titleOf(
  trades: Schema['FeedTrade'][] | undefined,
  { calls = [] }: Transaction,
  contract: string | undefined,
): string {
  const [first, ...others] = trades ?? []
  if (first) return others.length > 0 ? `${others.length + 1} trades` : `${nameOfTrade(first)}: ${first.symbol}`
  const asked = calls.at(calls.length > 2 ? 0 : -1)
  return asked?.title ?? (contract === undefined ? 'Transaction' : `Call of ${contract}`)
}

const TRADE_COLUMNS: Column<Schema['FeedTrade']>[] = [
  { head: 'Agent', cell: ({ agentId, agentName }) => <AgentName agentId={agentId} name={agentName} /> },
  ...tradeColumns<Schema['FeedTrade']>({ agentIdOf: ({ agentId }) => agentId }),
]

function stepsOf({ status, replacedBy, blockNumber, blockTimestamp, confirmations }: Transaction): Step[] {
  const count = Number(confirmations ?? 0)
  const block = (
    <>
      Block <span class="num">{Number(blockNumber ?? 0).toLocaleString('en')}</span>,{' '}
      <Time value={blockTimestamp ?? null} withSeconds />
    </>
  )
  const sent: Step = { name: 'sent', text: 'A node knows it.', state: status === 'pending' ? 'current' : 'done' }
  if (replacedBy !== undefined)
    return [
      { ...sent, state: 'done' },
      {
        name: 'replaced',
        text: <a href={`/app/transactions/${replacedBy}`}>Another transaction took its nonce.</a>,
        state: 'failed',
      },
    ]
  if (status === 'pending') return [sent, { name: 'included', text: 'Not in a block yet.', state: 'ahead' }]
  if (status === 'reverted') return [sent, { name: 'reverted', text: block, state: 'failed' }]
  return [
    sent,
    { name: 'included', text: block, state: 'done' },
    {
      name: 'confirmed',
      text: `${count.toLocaleString('en')} ${count === 1 ? 'block' : 'blocks'} from its own to the newest.`,
      state: 'done',
    },
  ]
}
