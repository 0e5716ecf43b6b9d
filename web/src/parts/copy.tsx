import { useEffect, useState } from 'preact/hooks'

const SHOWN_MS = 2_000
const TEXTS = { ready: 'Copy', copied: 'Copied', failed: 'Not copied' }

/** A button that copies a text. `what` names the text for screen readers, such as "the address". */
export function Copy({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<keyof typeof TEXTS>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [state])
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
    } catch {
      setState('failed')
    }
  }
  return (
    <button type="button" class="copy" onClick={copy}>
      <span aria-live="polite">{TEXTS[state]}</span>
      <span class="hidden"> {what}</span>
    </button>
  )
}

/** Lines to type or to paste, with a button that copies them. `what` names them as for `Copy`. */
export const Code = ({ text, what }: { text: string; what: string }) => (
  <div class="code">
    <pre tabIndex={0}>{text}</pre>
    <Copy text={text} what={what} />
  </div>
)
