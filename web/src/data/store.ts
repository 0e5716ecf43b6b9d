import { useEffect, useState } from 'preact/hooks'

export type Store<T> = { get(): T; set(value: T): void; subscribe(listener: (value: T) => void): () => void }

/** Creates a value that components can follow with `useStore`. */
export function createStore<T>(initial: T): Store<T> {
  let value = initial
  const listeners = new Set<(value: T) => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of [...listeners]) listener(next)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Returns the value of a store, and renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(store.get())
  useEffect(() => {
    setValue(store.get())
    return store.subscribe(next => setValue(next))
  }, [store])
  return value
}
