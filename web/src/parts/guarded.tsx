import type { ComponentChildren } from 'preact'
import { useErrorBoundary } from 'preact/hooks'

/** Says that a part of the page is broken, in its place: the rest of the page stays in view. */
export function Guarded({ what, children }: { what: string; children: ComponentChildren }) {
  const [error] = useErrorBoundary(thrown => console.error(thrown))
  return error === undefined ? children : <Broken text={`${what} cannot be shown.`} />
}

/** A failure of the page itself. A reload also brings the scripts of a newer version. */
export const Broken = ({ text }: { text: string }) => (
  <div class="failure" role="alert">
    <strong>{text}</strong>
    <p>This is a fault of the page. A reload may fix it, and brings the newest version.</p>
    <button type="button" onClick={() => window.location.reload()}>
      Reload
    </button>
  </div>
)
