import { NotFoundError } from '@agent-trading-service/client'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { reads } from '../data/client.ts'
import { useLatest, useRead } from '../data/use-read.ts'
import { isAgentId } from '../format/agent-id.ts'
import { navigate } from '../router.tsx'
import { Untrusted } from './text.tsx'

/** A pause in typing after which a name is looked up, in milliseconds. */
const PAUSE_MS = 200
const HOUR_MS = 3_600_000

/**
 * Returns the page of an agent's id or name, an owner's address, an intent's digest or a transaction's hash; undefined
 * if there is none. Throws if the service cannot be read.
 */
async function pageOf(text: string): Promise<string | undefined> {
  if (/^0x[0-9a-fA-F]{40}$/.test(text)) return `/app/owner?address=${text}`
  if (/^0x[0-9a-fA-F]{64}$/.test(text))
    return `/app/${(await exists(reads.getIntent({ digest: text }))) ? 'intents' : 'transactions'}/${text}`
  const agentId = text.replace(/^#/, '')
  if (isAgentId(agentId) && (await exists(reads.getAgent({ agentId })))) return `/app/agents/${agentId}`
  const named = isName(text) ? (await reads.listAgentsByName({ name: text })).agents[0] : undefined
  return named && `/app/agents/${named.agentId}`
}

const exists = (read: Promise<unknown>) =>
  read.then(
    () => true,
    error => {
      if (error instanceof NotFoundError) return false
      throw error
    },
  )

const isName = (text: string) => /[\p{L}\p{N}]/u.test(text) && !/^(#\d+|0x[0-9a-fA-F]{4,})$/.test(text)

const PROBLEMS = {
  unknown: 'No agent has this name or id, and it is no address of 20 bytes and no hash of 32 bytes.',
  failed: 'The search could not be read. Try again.',
}

/** A field that finds agents by name, and leads to the page of whatever is pasted into it. */
export function Search({ onFound }: { onFound?: () => void }) {
  const id = useId()
  const [text, setText] = useState('')
  const [name, setName] = useState('')
  const [active, setActive] = useState(0)
  const [problem, setProblem] = useState<keyof typeof PROBLEMS>()
  const latestText = useRef(text)
  latestText.current = text
  const read = useRead('listAgentsByName', name === '' ? undefined : { name }, { pollMs: HOUR_MS })
  const found = useLatest(read)
  const agents = name === '' ? [] : (found.data?.agents ?? [])
  /** Whether the list is of what is typed, and not of an earlier input. */
  const isCurrent = name !== '' && name === text.trim() && read.data !== undefined

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
    const chosen = isCurrent && !isAgentId(name) ? agents[active] : undefined
    if (chosen) return go(`/app/agents/${chosen.agentId}`)
    try {
      const page = await pageOf(text.trim())
      if (latestText.current !== text) return
      if (page === undefined) setProblem('unknown')
      else go(page)
    } catch {
      if (latestText.current === text) setProblem('failed')
    }
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
          aria-invalid={problem === 'unknown'}
          aria-describedby={`${id}-status`}
          onKeyDown={onKeyDown}
          onInput={event => {
            setText(event.currentTarget.value)
            setActive(0)
            setProblem(undefined)
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
      <p id={`${id}-status`} class={problem ? 'problem' : 'fine'} role="status">
        {problem
          ? PROBLEMS[problem]
          : agents.length > 0
            ? `${agents.length} ${agents.length === 1 ? 'agent' : 'agents'} found`
            : isCurrent && !isAgentId(name) && 'No agent has a name with such a word.'}
      </p>
    </form>
  )
}

/** The search of every page: a button, `/` or Ctrl+K opens it. */
export function SearchDialog() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const open = () => setOpen(true)
  // Once the field is in it, which then gets the focus.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal()
  }, [isOpen])
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
