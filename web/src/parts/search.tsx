import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { reads } from '../data/client.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import { isAgentId } from '../format/agent-id.ts'
import { navigate } from '../router.tsx'
import { Untrusted } from './text.tsx'

/** A pause in typing after which a name is looked up, in milliseconds. */
const PAUSE_MS = 200
const HOUR_MS = 3_600_000

/**
 * Returns the page of an agent id, an owner's address, an intent's digest or a transaction's hash; undefined for a
 * name.
 */
async function pageOf(text: string): Promise<string | undefined> {
  const id = text.replace(/^#/, '')
  if (isAgentId(id)) return `/app/agents/${id}`
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return `/app/owner?address=${text}`
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) return undefined
  const isIntent = await reads.getIntent({ digest: text }).then(
    () => true,
    () => false,
  )
  return isIntent ? `/app/intents/${text}` : `/app/transactions/${text}`
}

const isName = (text: string) => /[\p{L}\p{N}]/u.test(text) && !/^(#?\d+|0x[0-9a-fA-F]{4,})$/.test(text)

/** A field that finds agents by name, and leads to the page of whatever is pasted into it. */
export function Search({ onFound }: { onFound?: () => void }) {
  const id = useId()
  const [text, setText] = useState('')
  const [name, setName] = useState('')
  const [active, setActive] = useState(0)
  const [isUnknown, setUnknown] = useState(false)
  const found = useLatest(useRead('listAgentsByName', name === '' ? undefined : { name }, { pollMs: HOUR_MS }))
  const agents = name === '' ? [] : (found.data?.agents ?? [])
  const isEmpty = name !== '' && agents.length === 0 && found.data !== undefined

  useEffect(() => {
    const typed = text.trim()
    const timer = setTimeout(() => setName(isName(typed) ? typed : ''), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])

  function go(page: string) {
    setText('')
    navigate(page)
    onFound?.()
  }
  async function submit() {
    const chosen = agents[active]
    const page = (await pageOf(text.trim())) ?? (chosen && `/app/agents/${chosen.agentId}`)
    setUnknown(page === undefined)
    if (page !== undefined) go(page)
  }
  function onKeyDown(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined || agents.length === 0) return
    event.preventDefault()
    setActive((active + step + agents.length) % agents.length)
  }
  return (
    <form
      class="search"
      role="search"
      onSubmit={event => {
        event.preventDefault()
        submit()
      }}
    >
      <label for={`${id}-field`}>Find an agent, an owner, an intent or a transaction</label>
      <div class="field-row">
        <input
          id={`${id}-field`}
          role="combobox"
          autocomplete="off"
          spellcheck={false}
          maxLength={66}
          placeholder="Name or id, 0x address or 0x hash"
          value={text}
          aria-expanded={agents.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={agents.length > 0 ? `${id}-${active}` : undefined}
          aria-invalid={isUnknown}
          aria-describedby={`${id}-status`}
          onKeyDown={onKeyDown}
          onInput={event => {
            setText(event.currentTarget.value)
            setActive(0)
            setUnknown(false)
          }}
        />
        <button type="submit">Find</button>
      </div>
      {agents.length > 0 && (
        <div id={`${id}-list`} class="found" role="listbox" aria-label="Agents by name" tabIndex={-1}>
          {agents.map(({ agentId, agent }, index) => (
            <a
              key={agentId}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === active}
              tabIndex={-1}
              href={`/app/agents/${agentId}`}
              onClick={onFound}
            >
              <Untrusted text={agent.name} /> <span class="fine">#{agentId}</span>
            </a>
          ))}
        </div>
      )}
      <p id={`${id}-status`} class={isUnknown ? 'problem' : 'fine'} role="status">
        {isUnknown
          ? 'No agent has this name or id, and it is no address of 20 bytes and no hash of 32 bytes.'
          : isEmpty
            ? 'No agent has a name with such a word.'
            : agents.length > 0 && `${agents.length} ${agents.length === 1 ? 'agent' : 'agents'} found`}
      </p>
    </form>
  )
}

/** The search of every page: a button, `/` or Ctrl+K opens it. */
export function SearchDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const open = () => {
    setOpen(true)
    dialog.current?.showModal()
  }
  const close = () => dialog.current?.close()
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent) {
      const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select')
      const isShortcut = (event.key === '/' && !isTyping) || (event.key === 'k' && (event.ctrlKey || event.metaKey))
      if (!isShortcut || dialog.current?.open) return
      event.preventDefault()
      open()
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
  return (
    <>
      <button type="button" class="open-search" aria-label="Search" title="Search: / or Ctrl+K" onClick={open}>
        <svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="7" cy="7" r="5" />
          <path d="M11 11l4 4" />
        </svg>
      </button>
      <dialog ref={dialog} class="search-dialog" aria-label="Search" onClose={() => setOpen(false)}>
        {isOpen && <Search onFound={close} />}
        <button type="button" class="link" onClick={close}>
          Close
        </button>
      </dialog>
    </>
  )
}
