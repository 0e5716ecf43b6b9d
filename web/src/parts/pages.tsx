import { navigate, usePlace } from '../router.tsx'

/** The page before a page of a list, as far as it was gone through since the page was loaded. By list and cursor. */
const before = new Map<string, string>()

/** The page of a list. Its cursor is in the address, under the name of the list. */
export type ListPage = { name: string; cursor: string | undefined }

/** Returns which page of a list the address asks for. */
export const useListPage = (name: string): ListPage => ({
  name,
  cursor: usePlace().searchParams.get(name) ?? undefined,
})

type PagesProps = {
  page: ListPage
  nextCursor: string | null
  /** What a page is called that is nearer to the start of the list, and one that is further. */
  labels?: [nearer: string, further: string]
}

/**
 * Links to the pages next to one; nothing if there is one page. On a page that was linked to, the way back is the first
 * page.
 */
export function Pages({
  page: { name, cursor },
  nextCursor,
  labels: [nearer, further] = ['Newer', 'Older'],
}: PagesProps) {
  const place = usePlace()
  if (cursor === undefined && nextCursor === null) return null
  const keyOf = (shown: string) => `${place.pathname} ${name} ${shown}`
  const known = cursor === undefined ? undefined : before.get(keyOf(cursor))

  function go(event: Event, to: string | undefined) {
    const next = new URLSearchParams(place.searchParams)
    if (to) next.set(name, to)
    else next.delete(name)
    navigate(next.size === 0 ? place.pathname : `${place.pathname}?${next}`)
    const list = (event.currentTarget as Element).closest('.panel')
    requestAnimationFrame(() => list?.scrollIntoView())
  }
  return (
    <div class="pages">
      <button type="button" disabled={cursor === undefined} onClick={event => go(event, known)}>
        {cursor !== undefined && known === undefined ? 'First page' : nearer}
      </button>
      <button
        type="button"
        disabled={nextCursor === null}
        onClick={event => {
          if (nextCursor === null) return
          before.set(keyOf(nextCursor), cursor ?? '')
          go(event, nextCursor)
        }}
      >
        {further}
      </button>
    </div>
  )
}
