import { reads, type Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { Usdc } from '../../parts/figures.tsx'
import { Facts, Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { ownerOf } from './owner-client.ts'

/**
 * What the owner has locked for the agent's losses, what is missing for the next track, and the messages that change
 * it.
 */
export function FirstLoss({ agentId }: { agentId: string }) {
  const risk = useRead('getRiskState', { agentId })
  const agent = useRead('getAgent', { agentId })
  if (risk.data?.firstLoss === null) return null
  return (
    <Panel
      title="First-loss capital"
      aside={agent.data && <a href={`/app/vaults/${agent.data.agent.vault}`}>Its vault</a>}
    >
      <WhenReady resource={risk} what="the first-loss capital" lines={3}>
        {({ firstLoss }) =>
          firstLoss && <Locked agentId={agentId} owner={agent.data?.agent.owner} firstLoss={firstLoss} />
        }
      </WhenReady>
    </Panel>
  )
}

type LockedProps = {
  agentId: string
  owner: string | undefined
  firstLoss: NonNullable<Schema['RiskState']['firstLoss']>
}

function Locked({ agentId, owner, firstLoss }: LockedProps) {
  const { lockedShares, lockedUsdc, requiredUsdc, bound } = firstLoss
  const missing = BigInt(requiredUsdc ?? 0) - BigInt(lockedUsdc)
  return (
    <>
      <Facts
        items={[
          ['Locked shares are worth', <Usdc key="locked" value={lockedUsdc} />],
          ['The next track requires', <Usdc key="required" value={requiredUsdc} />],
          ['Missing', <Usdc key="missing" value={`${missing > 0n ? missing : 0n}`} />],
          [
            'Why',
            'Realized losses of the agent on its track burn these shares before depositors bear any; a track that requires them is closed without',
          ],
          ['They can be freed', bound ? 'once the agent holds no position' : 'now'],
        ]}
      />
      <div class="actions">
        <SignedAction
          title="Lock first-loss capital"
          text="Your vault shares, as many as the next track requires, pay the agent's losses on real capital before depositors do. Deposit into its vault first."
          review="Review"
          owner={owner}
          prepare={async () => {
            // The page has no node. The number is the service's, and the review shows it.
            const { body } = await reads.getFirstLossQuote({ agentId })
            return (await ownerOf(agentId)).prepareLockFirstLoss({ shares: body?.shares ?? '' })
          }}
        />
        {lockedShares !== '0' && !bound && (
          <SignedAction
            title="Free the shares"
            text="Nothing answers for the agent's losses any more, so it gives its real allocation back until you lock shares again. The shares begin a new holding time."
            review="Review"
            owner={owner}
            prepare={async () => (await ownerOf(agentId)).prepareLockFirstLoss({ shares: 0n })}
          />
        )}
      </div>
    </>
  )
}
