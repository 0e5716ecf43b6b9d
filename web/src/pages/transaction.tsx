import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { useDeployment } from '../parts/deployment.tsx'
import { Facts, PageTitle, Panel } from '../parts/panel.tsx'
import { WhenReady } from '../parts/states.tsx'
import { type Step, Steps } from '../parts/steps.tsx'
import { Address, Badge, Hash } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'

type Transaction = Schema['TransactionStatus']

const POLL_MS = 3_000
const NAMES = { pending: 'pending', success: 'executed', reverted: 'reverted' }

/** One transaction: whether it is included, and what became of it. */
export function TransactionPage({ params: { hash = '' } }: PageProps) {
  const { explorer } = useDeployment()
  useLive({})
  const transaction = useRead('getTransaction', { txHash: hash }, { pollMs: POLL_MS })
  return (
    <WhenReady resource={transaction} what="this transaction" lines={6} title="Transaction">
      {transaction => (
        <>
          <PageTitle
            kicker="Transaction"
            title={<span class="hex">{transaction.transactionHash.slice(0, 18)}…</span>}
            aside={
              <Badge
                tone={transaction.status === 'success' ? 'good' : transaction.status === 'reverted' ? 'bad' : 'quiet'}
              >
                {NAMES[transaction.status]}
              </Badge>
            }
          />
          <Panel title="Life">
            <Steps steps={stepsOf(transaction)} />
            {transaction.error && (
              <div class="failure">
                <strong>{transaction.error.message}</strong>
                <p class="fine hex">{transaction.error.code}</p>
              </div>
            )}
            {transaction.replacedBy && (
              <p class="prose">
                It was replaced by <a href={`/app/transactions/${transaction.replacedBy}`}>another transaction</a>.
              </p>
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
              ]}
            />
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

function stepsOf({ status, blockNumber, blockTimestamp, confirmations }: Transaction): Step[] {
  const count = Number(confirmations ?? 0)
  const block = (
    <>
      Block <span class="num">{Number(blockNumber ?? 0).toLocaleString('en')}</span>,{' '}
      <Time value={blockTimestamp ?? null} withSeconds />
    </>
  )
  const sent: Step = { name: 'sent', text: 'A node knows it.', state: status === 'pending' ? 'current' : 'done' }
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
