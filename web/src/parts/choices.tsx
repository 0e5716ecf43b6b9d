import type { ComponentChildren } from 'preact'
import { navigate, usePlace } from '../router.tsx'

/** A filter of a list. The address leaves out the initial value, which is the first one unless another is named. */
export type Choice = { name: string; label: string; values: [value: string, label: string][]; initial?: string }

const initialOf = ({ initial, values }: Choice) => initial ?? values[0]?.[0] ?? ''

/** Returns what the address chooses, by name. */
export const chosenIn = (choices: readonly Choice[], query: URLSearchParams): Record<string, string> =>
  Object.fromEntries(choices.map(choice => [choice.name, query.get(choice.name) ?? initialOf(choice)]))

type ChoicesProps = {
  label: string
  choices: readonly Choice[]
  /** Filters that are no choice among some values. */
  children?: ComponentChildren
}

/** The filters of a list. They are in the address, so that a list can be linked and gone back to. */
export function Choices({ label, choices, children }: ChoicesProps) {
  const { pathname, searchParams } = usePlace()
  const chosen = chosenIn(choices, searchParams)

  function choose(choice: Choice, value: string) {
    const next = new URLSearchParams(searchParams)
    next.delete('cursor')
    if (value === initialOf(choice)) next.delete(choice.name)
    else next.set(choice.name, value)
    navigate(next.size === 0 ? pathname : `${pathname}?${next}`)
  }
  return (
    <form class="choices" aria-label={label} onSubmit={event => event.preventDefault()}>
      {choices.map(choice => (
        <label key={choice.name}>
          <span>{choice.label}</span>
          <select value={chosen[choice.name]} onChange={event => choose(choice, event.currentTarget.value)}>
            {choice.values.map(([value, text]) => (
              <option key={value} value={value} selected={value === chosen[choice.name]}>
                {text}
              </option>
            ))}
          </select>
        </label>
      ))}
      {children}
    </form>
  )
}
