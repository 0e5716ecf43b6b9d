import { decodeClaim } from '@agent-trading-service/protocol/examination-claim'
import { Percent } from '../../parts/figures.tsx'
import { Facts, Panel } from '../../parts/panel.tsx'
import { Badge, Hash } from '../../parts/text.tsx'

/** What the owner says on chain of an examination of the agent; nothing without such a claim. */
export function Examination({ metadataURI }: { metadataURI: string }) {
  const claim = decodeClaim(metadataURI)
  if (claim === undefined) return null
  const { hash, runs, variants, medianReturnBps, beatsHoldingBps, rankBps, edgeBps } = claim
  return (
    <Panel title="Examination" aside={<Badge tone="warn">the owner's claim</Badge>}>
      <Facts
        items={[
          ['Markets', `${runs}, with ${variants} ${variants === 1 ? 'variant' : 'variants'} tried`],
          ['Median return', <Percent key="return" bps={medianReturnBps} signed />],
          ['Better than holding', <Percent key="holding" bps={beatsHoldingBps} fraction={0} />],
          ['Better than random entries', <Percent key="rank" bps={rankBps} fraction={0} />],
          ['Sharpe ratio above 0', edgeBps < 0 ? 'not defined' : <Percent key="edge" bps={edgeBps} fraction={1} />],
          ['Certificate', <Hash key="hash" value={hash} />],
        ]}
      />
      <p class="fine">
        Nobody has checked it here. With the certificate and the agent, <code>ats examine --recompute</code> plays the
        same markets and names each difference; it prints this hash if the certificate holds.
      </p>
    </Panel>
  )
}
