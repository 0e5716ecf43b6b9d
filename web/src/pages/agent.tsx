import type { ReadOutput } from '@agent-trading-service/client'
import type { Schema } from '../data/client.ts'
import { useLive } from '../data/live.ts'
import { type Reading, useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { Percent, Usdc } from '../parts/figures.tsx'
import { Facts, Figures, JumpLinks, PageTitle, Panel } from '../parts/panel.tsx'
import { WhenReady } from '../parts/states.tsx'
import { StopAlertChoice } from '../parts/stop-alert-choice.tsx'
import { Address, Badge, CapitalMode, CsvLink, Untrusted } from '../parts/text.tsx'
import { Time } from '../parts/times.tsx'
import { ClosedPositions } from './agent/closed-positions.tsx'
import { EquityChart } from './agent/equity-chart.tsx'
import { Examination } from './agent/examination.tsx'
import { Limits } from './agent/limits.tsx'
import { hasExpired, MandateFacts } from './agent/mandate.tsx'
import { OpenPositions } from './agent/open-positions.tsx'
import { Orders } from './agent/orders.tsx'
import { Prices } from './agent/prices.tsx'
import { Promotion } from './agent/promotion.tsx'
import { Statistics } from './agent/statistics.tsx'
import { Trades } from './agent/trades.tsx'
import { StaleMoney } from './vault/market-hours.tsx'
import { titleCase } from './vault/tracks.tsx'
import { AgentStatus } from './vault.tsx'

/** One agent: equity, positions, limits, mandate, promotion and trades. */
export function AgentPage({ params: { agentId: given = '' } }: PageProps) {
  const agent = useRead('getAgent', { agentId: given })
  const risk = useRead('getRiskState', { agentId: given })
  const positions = useRead('listPositions', { agentId: given })
  const control = useRead('getMandate', { agentId: given })
  const vaults = useRead('listVaults', {}, { pollMs: 120_000 })
  const isKnown = agent.data !== undefined
  useLive(isKnown ? { agentId: given } : undefined)
  return (
    <WhenReady resource={agent} what="this agent" lines={10} title={`Agent ${given}`}>
      {data => (
        <KnownAgent {...data} risk={risk} positions={positions} control={control} vaults={vaults.data?.vaults} />
      )}
    </WhenReady>
  )
}

type KnownAgentProps = ReadOutput<'getAgent'> & {
  risk: Reading<Schema['RiskState']>
  positions: Reading<ReadOutput<'listPositions'>>
  control: Reading<ReadOutput<'getMandate'>>
  vaults: Schema['Vault'][] | undefined
}

function KnownAgent({ agentId, agent, asOf, risk, positions, control, vaults }: KnownAgentProps) {
  const vault = vaults?.find(({ contractAddress }) => contractAddress === agent.vault)
  const track = titleCase(agent.trackName)
  return (
    <>
      <PageTitle
        kicker={
          <>
            Agent #{agentId} · {track} track of{' '}
            <a href={`/app/vaults/${vault?.id ?? agent.vault}`}>{vault?.name ?? 'its vault'}</a>
          </>
        }
        title={<Untrusted text={agent.name} fallback={`Agent ${agentId}`} />}
        aside={
          <>
            <AgentStatus name={agent.statusName} />
            {risk.data && <CapitalMode mode={risk.data.capitalMode} />}
            {control.data?.closingSince && <Badge tone="bad">closing all positions</Badge>}
            {control.data && !control.data.closingSince && control.data.mandate.mode !== 'trade' && (
              <Badge tone="bad">buying stopped by the owner</Badge>
            )}
            {control.data && hasExpired(control.data) && <Badge tone="bad">mandate expired</Badge>}
          </>
        }
      />
      <JumpLinks titles={['Open positions', 'Limits', 'Mandate', 'Trades', 'Closed positions', 'Identity']} />
      <WhenReady resource={risk} what="the risk state" lines={1} shape="figures">
        {data => <AgentFigures risk={data} />}
      </WhenReady>
      <Panel title="Equity and drawdown" aside={<a href={`/app/compare?agents=${agentId}`}>Compare</a>}>
        <EquityChart
          agentId={agentId}
          vault={agent.vault}
          since={Number(agent.createdAt)}
          now={Number(asOf.blockTimestamp)}
          risk={risk}
        />
      </Panel>
      <Panel
        title="Open positions"
        flush
        aside={
          <>
            {positions.data && <span class="fine num">{positions.data.positions.length} open</span>}
            <StopAlertChoice />
          </>
        }
      >
        <WhenReady resource={positions} what="the open positions">
          {({ positions }) => <OpenPositions agentId={agentId} positions={positions} />}
        </WhenReady>
      </Panel>
      <Prices agentId={agentId} positions={positions} now={Number(asOf.blockTimestamp)} />
      <Orders agentId={agentId} />
      <div class="columns thirds">
        <Panel title="Limits">
          <WhenReady resource={risk} what="the limits">
            {data => <Limits risk={data} control={control.data} />}
          </WhenReady>
        </Panel>
        <Panel title="Promotion">
          <WhenReady resource={risk} what="the promotion criteria">
            {({ promotionReadiness, firstLoss, examination }) => (
              <Promotion readiness={promotionReadiness} firstLoss={firstLoss} examination={examination} />
            )}
          </WhenReady>
        </Panel>
        <Panel title="Mandate" aside={<a href={`/app/owner?agent=${agentId}`}>Owner's desk</a>}>
          <WhenReady resource={control} what="the mandate">
            {data => <MandateFacts control={data} />}
          </WhenReady>
        </Panel>
      </div>
      <Panel
        title="Trades"
        flush
        aside={
          <>
            <a href={`/app/trades?agent=${agentId}`}>Filter</a> ·{' '}
            <CsvLink of="the trades" path={`/agents/${agentId}/trades`} />
          </>
        }
      >
        <Trades agentId={agentId} />
      </Panel>
      <Statistics agentId={agentId} />
      <Examination metadataURI={agent.metadataURI} />
      <Panel title="Closed positions" flush>
        <ClosedPositions agentId={agentId} />
      </Panel>
      <Panel title="Identity">
        <Facts
          items={[
            ['Owner', <Address key="owner" value={agent.owner} whole />],
            ['Signer', <Address key="signer" value={agent.signer} whole />],
            ['Payouts to', <Address key="payout" value={agent.payoutRecipient} whole />],
            ['Registered', <Time key="created" value={agent.createdAt} />],
            ['Metadata', <Untrusted key="metadata" text={agent.metadataURI} fallback="none" />],
            [
              'ERC-8004 identity',
              agent.hasERC8004Identity
                ? `#${agent.erc8004AgentId}${agent.erc8004OwnerCurrent ? '' : ', no longer held by the owner'}`
                : 'none',
            ],
          ]}
        />
        <p class="fine">Name and metadata are written by the agent and shown as text.</p>
      </Panel>
    </>
  )
}

function AgentFigures({ risk }: { risk: Schema['RiskState'] }) {
  const { equity, derived, pnl, positions, allocation } = risk
  // A promotion changes the capital and starts another record: results of earlier tracks are not of this capital.
  const onTrack = BigInt(equity.currentUsdc) - BigInt(allocation.cap) - BigInt(derived.unrealizedPnlUsdc)
  const before = BigInt(pnl.lifetimeRealizedUsdc) - onTrack
  return (
    <>
      <StaleMoney symbols={risk.staleSymbols} what="equity uses" />
      <Figures
        items={[
          {
            label: 'Equity',
            value: <Usdc value={equity.currentUsdc} />,
            note: (
              <>
                peak <Usdc value={equity.peakUsdc} />
              </>
            ),
          },
          { label: 'Return on the track', value: <Percent bps={derived.returnBps} signed /> },
          {
            label: 'Drawdown',
            value: <Percent bps={equity.currentDrawdownBps} />,
            note: (
              <>
                limit{' '}
                {risk.accountRiskBounds.maxDrawdownBps === 0 ? (
                  'none'
                ) : (
                  <Percent bps={risk.accountRiskBounds.maxDrawdownBps} />
                )}
              </>
            ),
          },
          { label: 'Unrealized', value: <Usdc value={derived.unrealizedPnlUsdc} signed /> },
          {
            label: 'Realized on the track',
            value: <Usdc value={`${onTrack}`} signed />,
            note: (
              <>
                today <Usdc value={pnl.dailyRealizedUsdc} signed />
              </>
            ),
          },
          ...(before === 0n
            ? []
            : [
                {
                  label: 'On earlier tracks',
                  value: <Usdc value={`${before}`} signed />,
                  note: 'not of the present capital',
                },
              ]),
          {
            label: 'Positions',
            value: <span class="num">{positions.openCount} open</span>,
            note: <span class="num">{positions.closed} closed</span>,
          },
        ]}
      />
    </>
  )
}
