import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { type Column, DataTable } from '../parts/data-table.tsx'
import { Calls } from '../parts/described.tsx'
import { Percent, Price, Usdc } from '../parts/figures.tsx'
import { Facts, PageTitle, Panel } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { type Step, Steps } from '../parts/steps.tsx'
import { Badge, Hash, TransactionLink, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'

type Intent = Schema['Intent']
type Fact = [string, preact.VNode]

/** While an intent is pending, it is read this often, in addition to the event stream. */
const POLL_MS = 3_000

/** The life of a signed intent, from received to final. */
export function IntentPage({ params: { digest = '' } }: PageProps) {
  const intent = useRead('getIntent', { digest }, { pollMs: POLL_MS })
  const agentId = intent.data?.agentId
  useLive(agentId === undefined ? undefined : { agentId })
  return (
    <WhenReady resource={intent} what="this intent" lines={8} title="Intent">
      {intent => (
        <>
          <PageTitle
            kicker={
              agentId === undefined ? (
                'Signed intent'
              ) : (
                <>
                  Signed intent of <a href={`/app/agents/${agentId}`}>agent {agentId}</a>
                </>
              )
            }
            title={intent.calls?.at(-1)?.title ?? 'Signed message'}
            aside={<Badge tone={toneOf(intent.state)}>{intent.state}</Badge>}
          />
          <Panel title="What was signed">
            {intent.calls?.length ? <Calls calls={intent.calls} /> : <p class="prose">The executor did not keep it.</p>}
            {intent.kind === 'order' && agentId !== undefined && (
              <OrderState agentId={agentId} orderId={intent.digest} />
            )}
          </Panel>
          <Panel title="Life">
            <Steps steps={stepsOf(intent)} />
            {intent.refusal && (
              <div class="failure">
                <strong>{intent.refusal.error}</strong>
                {intent.refusal.remedy && <p>{intent.refusal.remedy}</p>}
                <p class="fine hex">{intent.refusal.code}</p>
              </div>
            )}
          </Panel>
          {intent.fill && (
            <Panel title="Fill">
              <Facts
                items={[
                  ['USDC', <Usdc key="usdc" value={intent.fill.usdcAmount} />],
                  [
                    'Price',
                    intent.fill.priceUsd === null ? 'unknown' : <Price key="price" usd={intent.fill.priceUsd} />,
                  ],
                  [
                    'Cost against the oracle',
                    intent.fill.costBps === null ? 'unknown' : <Percent key="cost" bps={intent.fill.costBps} />,
                  ],
                  ...(intent.realizedPnlUsdc
                    ? [['Realized', <Usdc key="pnl" value={intent.realizedPnlUsdc} signed />] as Fact]
                    : []),
                ]}
              />
            </Panel>
          )}
          <Panel title="Facts">
            <Facts
              items={[
                ['Digest', <Hash key="digest" value={intent.digest} />],
                ...(intent.note === undefined ? [] : [['Note', <Untrusted key="note" text={intent.note} />] as Fact]),
                ...(intent.positionId !== undefined && agentId !== undefined
                  ? [
                      [
                        'Position',
                        <a key="position" href={`/app/agents/${agentId}/positions/${intent.positionId}`}>
                          #{intent.positionId}
                        </a>,
                      ] as Fact,
                    ]
                  : []),
              ]}
            />
          </Panel>
          <Panel title="Attempts" flush>
            <DataTable
              label="Attempts"
              columns={ATTEMPT_COLUMNS}
              rows={intent.attempts}
              keyOf={({ transactionHash }) => transactionHash}
              empty={<Empty title="No transaction was signed for it." />}
            />
          </Panel>
        </>
      )}
    </WhenReady>
  )
}

/** What became of an order since it was placed: its id is the digest that was signed. */
function OrderState({ agentId, orderId }: { agentId: string; orderId: string }) {
  const order = useRead('getOrder', { agentId, orderId })
  if (order.error?.status === 404) return <p class="prose">The order was not placed.</p>
  return (
    <WhenReady resource={order} what="the order" lines={1}>
      {({ state, parts, partsDone }) => (
        <p class="prose">
          Now: {state}
          {parts > 1 && `, ${partsDone} of ${parts} parts executed`}.
        </p>
      )}
    </WhenReady>
  )
}

const toneOf = (state: Intent['state']) =>
  state === 'final' || state === 'mined' ? 'good' : state in TAKEN ? 'bad' : 'quiet'

const ORDER = ['received', 'prepared', 'sent', 'mined', 'final'] as const
const TEXTS = {
  received: 'The service checks signature, nonce and rules.',
  prepared: 'The transaction is signed and journalled.',
  sent: 'A node has accepted it.',
  mined: 'It is executed in a block.',
  final: 'Its block is too deep for a reorg.',
}
/** The steps before a failure that were taken for certain. */
const TAKEN = { rejected: 1, reverted: 3, dropped: 3 }
const ENDS = {
  rejected: 'Nothing was executed.',
  reverted: 'It was mined without effect.',
  dropped: 'The sequencer left it out; nothing was executed.',
}

function stepsOf({ state, createdAt, blockNumber }: Intent): Step[] {
  const block = blockNumber === undefined ? '' : ` Block ${Number(blockNumber).toLocaleString('en')}.`
  const textOf = (name: (typeof ORDER)[number]) =>
    name === 'received' ? (
      <>
        {TEXTS.received} <Time value={createdAt} withSeconds />
      </>
    ) : (
      TEXTS[name] + (name === 'mined' ? block : '')
    )
  if (state === 'rejected' || state === 'reverted' || state === 'dropped') {
    const taken = ORDER.slice(0, TAKEN[state]).map(name => ({ name, text: textOf(name), state: 'done' as const }))
    const text = ENDS[state] + (state === 'reverted' ? block : '')
    return [...taken, { name: state, text, state: 'failed' }]
  }
  const reached = ORDER.indexOf(state)
  return ORDER.map((name, index) => ({
    name,
    text: textOf(name),
    state: index < reached || state === 'final' ? 'done' : index === reached ? 'current' : 'ahead',
  }))
}

const ATTEMPT_COLUMNS: Column<Schema['Attempt']>[] = [
  { head: 'Transaction', part: 'name', cell: ({ transactionHash }) => <TransactionLink hash={transactionHash} /> },
  { head: 'Purpose', cell: ({ purpose }) => (purpose === 'call' ? 'execute' : 'cancel') },
  { head: 'Account nonce', isNumber: true, cell: ({ nonce }) => nonce },
  { head: 'State', part: 'lead', cell: ({ state }) => state },
  { head: 'Sent', cell: ({ sentAt }) => <Time value={sentAt} withSeconds /> },
]
