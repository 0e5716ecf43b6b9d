import { useState } from 'preact/hooks'
import { useStore } from '../../data/store.ts'
import { useRead } from '../../data/use-read.ts'
import { isAgentId } from '../../format/agent-id.ts'
import { Untrusted } from '../../parts/text.tsx'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { connected } from '../../wallet/wallets.ts'
import { AddressField } from './agent-controls.tsx'
import { addressProblem, ownerOf } from './owner-client.ts'

/** Takes an agent that was offered to the wallet's account. */
export function AcceptOffer() {
  const [agentId, setAgentId] = useState('')
  const [signer, setSigner] = useState('')
  return (
    <SignedAction
      title="Accept an offer"
      text="The agent and its payouts become yours, and the signer you name trades for it. Its mandate stays until you set another."
      review="Review"
      problem={
        isAgentId(agentId) && signer !== ''
          ? addressProblem(signer)
          : 'Enter the agent id and the address that is to sign its trades.'
      }
      prepare={async () =>
        (await ownerOf(agentId)).prepareAcceptTransfer({ newSigner: signer.trim() as `0x${string}` })
      }
    >
      <Offers onChoose={setAgentId} />
      <div class="fields">
        <label class="field">
          <span>Agent id</span>
          <input
            inputMode="numeric"
            autocomplete="off"
            value={agentId}
            onInput={event => setAgentId(event.currentTarget.value.trim())}
          />
        </label>
        <AddressField label="Signer of its trades" value={signer} onInput={setSigner} />
      </div>
    </SignedAction>
  )
}

/** The agents that are offered to the wallet's account now. */
function Offers({ onChoose }: { onChoose: (agentId: string) => void }) {
  const wallet = useStore(connected)
  const list = useRead('listOffers', wallet && { owner: wallet.address })
  const offers = list.data?.offers ?? []
  if (offers.length === 0) return <p class="fine">{list.data && 'No agent is offered to this account.'}</p>
  return (
    <ul class="stack">
      {offers.map(({ agentId, agent }) => (
        <li key={agentId}>
          <a href={`/app/agents/${agentId}`}>
            <Untrusted text={agent.name} /> <span class="fine">#{agentId}</span>
          </a>{' '}
          <button type="button" class="small" onClick={() => onChoose(agentId)}>
            Choose<span class="hidden"> agent {agentId}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
