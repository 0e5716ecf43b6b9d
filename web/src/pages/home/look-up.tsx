import { useState } from 'preact/hooks'
import { reads } from '../../data/client.ts'
import { navigate } from '../../router.tsx'

/** Finds the page of an agent id, an owner's address, an intent's digest or a transaction's hash. */
async function pageOf(text: string): Promise<string | undefined> {
  if (/^#?[1-9]\d{0,15}$/.test(text)) return `/app/agents/${text.replace('#', '')}`
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return `/app/owner?address=${text}`
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return undefined
  const isIntent = await reads.getIntent({ digest: text }).then(
    () => true,
    () => false,
  )
  return isIntent ? `/app/intents/${text}` : `/app/transactions/${text}`
}

/** A field that leads to the page of whatever is pasted into it. */
export function LookUp() {
  const [text, setText] = useState('')
  const [isUnknown, setUnknown] = useState(false)
  return (
    <form
      class="look-up"
      role="search"
      onSubmit={async event => {
        event.preventDefault()
        const page = await pageOf(text.trim())
        setUnknown(page === undefined)
        if (page !== undefined) navigate(page)
      }}
    >
      <label for="look-up">Find an agent, an owner, an intent or a transaction</label>
      <div class="field-row">
        <input
          id="look-up"
          name="look-up"
          autocomplete="off"
          spellcheck={false}
          placeholder="Agent id, 0x address or 0x hash"
          value={text}
          aria-invalid={isUnknown}
          aria-describedby="look-up-problem"
          onInput={event => {
            setText(event.currentTarget.value)
            setUnknown(false)
          }}
        />
        <button type="submit">Find</button>
      </div>
      <p id="look-up-problem" class="problem" role="status">
        {isUnknown && 'This is no agent id, no address of 20 bytes and no hash of 32 bytes.'}
      </p>
    </form>
  )
}
