import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks'
import { forgetReads, POLL_MS } from '../data/use-read.ts'

/**
 * Says that a part of the page is broken, in its place: the rest of the page stays in view. The part is built again
 * from new reads at each interval, unless the focus is on its button.
 */
export function Guarded({ what, children }: { what: string; children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null)
  const [error, reset] = useErrorBoundary(thrown => {
    console.error(thrown)
    forgetReads()
  })
  useEffect(() => {
    if (error === undefined) return
    const timer = setInterval(() => place.current?.contains(document.activeElement) || reset(), POLL_MS)
    return () => clearInterval(timer)
  }, [error])
  if (error === undefined) return children
  return (
    <div ref={place}>
      <Broken text={`${what} cannot be shown.`}>
        The page cannot use what it has read, and tries again by itself.
      </Broken>
    </div>
  )
}

/** A failure of the page itself. A reload also brings the scripts of a newer version. */
export const Broken = ({ text, children }: { text: string; children?: ComponentChildren }) => (
  <div class="failure" role="alert">
    <strong>{text}</strong>
    <p>{children} A reload may fix it, and brings the newest version.</p>
    <button type="button" onClick={() => window.location.reload()}>
      Reload
    </button>
  </div>
)
