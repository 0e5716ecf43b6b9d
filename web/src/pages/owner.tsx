import { useState } from 'preact/hooks'
import { useLive } from '../data/live.ts'
import { useStore } from '../data/store.ts'
import { useRead } from '../data/use-read.ts'
import type { PageProps } from '../page-props.ts'
import { PageTitle, Panel } from '../parts/panel.tsx'
import { Empty } from '../parts/states.tsx'
import { navigate } from '../router.tsx'
import { WalletBar } from '../wallet/wallet-bar.tsx'
import { connected } from '../wallet/wallets.ts'
import { AcceptOffer } from './owner/accept-offer.tsx'
import { AgentControls } from './owner/agent-controls.tsx'
import { AgentsOfOwner } from './owner/agents-of-owner.tsx'

const isAddress = (text: string) => /^0x[0-9a-fA-F]{40}$/.test(text)

/** Agents by their owner's address, and what the owner signs for them with a wallet. */
export function OwnerPage({ query }: PageProps) {
  const wallet = useStore(connected)
  const chosenAgent = query.get('agent') ?? undefined
  const control = useRead('getMandate', chosenAgent === undefined ? undefined : { agentId: chosenAgent })
  const owner = query.get('address') ?? wallet?.address ?? control.data?.owner
  useLive({})
  return (
    <>
      <PageTitle
        title="Owner's desk"
        kicker="Stop agents, set their mandates and hand them over. The wallet signs; no key enters this page"
      />
      <Panel title="Wallet">
        <WalletBar />
      </Panel>
      <div class="columns desk">
        <div class="stack">
          <Panel title="Agents of an owner" flush>
            <OwnerField key={owner ?? ''} owner={owner ?? ''} query={query} />
            {owner !== undefined && isAddress(owner) ? (
              <AgentsOfOwner
                owner={owner}
                shown={chosenAgent}
                pathOf={agentId => withParameter(query, 'agent', agentId)}
              />
            ) : (
              <Empty title="No owner chosen.">Connect a wallet, or paste the address of an owner.</Empty>
            )}
          </Panel>
          <Panel title="Offered to you">
            <AcceptOffer />
          </Panel>
        </div>
        {chosenAgent === undefined ? (
          <Panel title="Agent">
            <Empty title="Choose an agent.">What its owner can do with it appears here.</Empty>
          </Panel>
        ) : (
          <AgentControls key={chosenAgent} agentId={chosenAgent} />
        )}
      </div>
    </>
  )
}

function withParameter(query: URLSearchParams, name: string, value: string): string {
  const next = new URLSearchParams(query)
  next.set(name, value)
  return `/app/owner?${next}`
}

function OwnerField({ owner, query }: { owner: string; query: URLSearchParams }) {
  const [text, setText] = useState(owner)
  const isWrong = text !== '' && !isAddress(text.trim())
  return (
    <form
      class="inset"
      onSubmit={event => {
        event.preventDefault()
        if (!isWrong && text !== '') navigate(withParameter(query, 'address', text.trim()))
      }}
    >
      <label for="owner-address">Address of the owner</label>
      <div class="field-row">
        <input
          id="owner-address"
          class="hex"
          autocomplete="off"
          spellcheck={false}
          placeholder="0x…"
          value={text}
          aria-invalid={isWrong}
          onInput={event => setText(event.currentTarget.value)}
        />
        <button type="submit" disabled={isWrong || text === ''}>
          Show
        </button>
      </div>
    </form>
  )
}
