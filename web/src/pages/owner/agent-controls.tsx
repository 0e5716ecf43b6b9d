import { useRef, useState } from 'preact/hooks'
import { useRead } from '../../data/use-read.ts'
import { Usdc } from '../../parts/figures.tsx'
import { Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { SignedAction } from '../../wallet/signed-action.tsx'
import { MandateFacts } from '../agent/mandate.tsx'
import { FirstLoss } from './first-loss.tsx'
import { MandateForm } from './mandate-form.tsx'
import { OrderDesk } from './order-desk.tsx'
import { addressProblem, isAddress, ownerOf } from './owner-client.ts'
import { PastMessages } from './past-messages.tsx'
import { Webhooks } from './webhooks.tsx'

const ZERO_ADDRESS = '0x0000000000000000000000000000000000000000'

/** What the owner of an agent can do with it. */
export function AgentControls({ agentId }: { agentId: string }) {
  const control = useRead('getMandate', { agentId })
  const positions = useRead('listPositions', { agentId })
  const owner = control.data?.owner
  return (
    <div class="stack">
      <Panel title={`Agent #${agentId} now`} aside={<a href={`/app/agents/${agentId}`}>Its page</a>}>
        <WhenReady resource={positions} what="the open positions" lines={1}>
          {({ positions }) => (
            <p class="position-list" role="status">
              {positions.length === 0
                ? 'No open position.'
                : positions.map(({ positionId, symbol, usdcCostBasis, unrealizedPnlUsdc }) => (
                    <span key={positionId} class="position-chip">
                      <a href={`/app/agents/${agentId}/positions/${positionId}`}>
                        {symbol} #{positionId}
                      </a>{' '}
                      <Usdc value={usdcCostBasis} />{' '}
                      {unrealizedPnlUsdc && <Usdc value={unrealizedPnlUsdc} signed unit={false} />}
                    </span>
                  ))}
            </p>
          )}
        </WhenReady>
        <WhenReady resource={control} what="the mandate" lines={8}>
          {data => (
            <>
              {data.closingSince && (
                <p>
                  <Badge tone="bad">closing all positions</Badge>
                </p>
              )}
              <MandateFacts control={data} />
            </>
          )}
        </WhenReady>
      </Panel>
      <Panel title="Stop">
        <div class="actions">
          <SignedAction
            title="Stop buying"
            text="The agent opens and adds nothing more. Its positions stay, and their exits still fire."
            review="Review"
            owner={owner}
            prepare={async () => (await ownerOf(agentId)).prepareStop({ action: 'reduceOnly' })}
          />
          <SignedAction
            title="Stop and sell everything"
            text="The agent stops buying, and the keeper sells all of its positions."
            review="Review"
            tone="danger"
            owner={owner}
            prepare={async () => (await ownerOf(agentId)).prepareStop({ action: 'flatten' })}
          />
        </div>
      </Panel>
      <Panel title="Mandate">{control.data && <MandateForm control={control.data} reload={control.reload} />}</Panel>
      {control.data && <OrderDesk control={control.data} />}
      <FirstLoss agentId={agentId} />
      <Panel title="Keys and ownership">
        <div class="actions">
          <NewSigner agentId={agentId} owner={owner} />
          <Offer agentId={agentId} owner={owner} pendingOwner={control.data?.pendingOwner ?? null} />
        </div>
      </Panel>
      {control.data && <Webhooks agentId={agentId} parties={[control.data.owner, control.data.signer]} />}
      <PastMessages agentId={agentId} />
    </div>
  )
}

type ControlProps = { agentId: string; owner: string | undefined }

function NewSigner({ agentId, owner }: ControlProps) {
  const [signer, setSigner] = useState('')
  return (
    <SignedAction
      title="Replace the signer"
      text="The key that trades for the agent. The former one is refused from the next block on."
      review="Review"
      owner={owner}
      problem={addressProblem(signer)}
      prepare={async () => (await ownerOf(agentId)).prepareSetSigner({ newSigner: signer.trim() as `0x${string}` })}
    >
      <AddressField label="New signer" value={signer} onInput={setSigner} />
    </SignedAction>
  )
}

function Offer({ agentId, owner, pendingOwner }: ControlProps & { pendingOwner: string | null }) {
  const [newOwner, setNewOwner] = useState('')
  // Stays once there was an offer, so that the receipt of its withdrawal is seen.
  const wasOffered = useRef(false)
  if (pendingOwner) wasOffered.current = true
  return (
    <>
      <SignedAction
        title="Offer to a new owner"
        text="Nothing changes before the new owner accepts on this page."
        review="Review"
        owner={owner}
        problem={addressProblem(newOwner)}
        prepare={async () => (await ownerOf(agentId)).prepareTransfer({ newOwner: newOwner.trim() as `0x${string}` })}
      >
        <AddressField label="New owner" value={newOwner} onInput={setNewOwner} />
      </SignedAction>
      {wasOffered.current && (
        <SignedAction
          title="Withdraw the offer"
          text={pendingOwner ? `The agent is offered to ${pendingOwner}.` : 'No offer is open.'}
          review="Review"
          owner={owner}
          prepare={async () => (await ownerOf(agentId)).prepareTransfer({ newOwner: ZERO_ADDRESS })}
        />
      )}
    </>
  )
}

type AddressFieldProps = { label: string; value: string; onInput: (value: string) => void }

/** A field for an address. */
export function AddressField({ label, value, onInput }: AddressFieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="hex"
        autocomplete="off"
        spellcheck={false}
        placeholder="0x…"
        value={value}
        aria-invalid={value !== '' && !isAddress(value)}
        onInput={event => onInput(event.currentTarget.value)}
      />
    </label>
  )
}
